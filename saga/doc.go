// Package saga defines long-running processes and decides what each of their steps does. It imports only the standard
// library: no clock, no database, no logger.
//
//	var Orders = saga.Define("order", saga.Options{},
//		saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).Place), // the key, and a method
//		saga.OnReply((*Order).Charged), saga.OnTimeout((*Order).Unpaid))
//
// # Promise
//
// A [Definition] has the handlers of a saga. A [Session] steps messages on one instance, in order and in memory, and
// returns the result as an [Outcome]: messages to write, timeouts to remove, a failure, or a reason to discard. It
// performs nothing. If the handler is deterministic, the same instance, message and [Runtime] give the same outcome.
//
//  1. A step starts from decoded bytes, so it does not depend on which messages shared its batch.
//  2. A step that fails changes nothing: state, pending timeouts and completion are those of the last good step.
//  3. A message is encoded when the handler sends it; later changes to the value have no effect.
//  4. A fault (a body that is too large, text that is not UTF-8, a timeout without a handler) fails the step
//     permanently, whatever the handler returns.
//
// # States of an instance
//
//	absent ──start message──▶ live ──Complete──▶ absent
//	                           ▲ │
//	                           └─┘ handled message, answer, timeout
//
// After Complete a key can start again, with a new instance id, so answers and timeouts of the earlier instance never
// reach the new one. With Options.Remember it can start again when that time is over.
//
// # Failures
//
// [PermanentError] means that another attempt cannot help. [RetryAfterError] has the time to wait. [PanicError] has the
// stack of a handler that panicked. For every error the policy of the endpoint decides. [Definition.Open] returns
// [ErrState] and [ErrNewerState].
//
// # From outside
//
// StatesOf reads the states of instances as their type, from a bus or of an instance that a watch has seen.
//
// # For runtimes
//
//	call, err := def.Prepare(delivery, codec)           // decode, find the key; an error is permanent
//	… load the instance by call.Instance() or call.Key() …
//	if none and !call.MayStart() { call.StepMissing(ctx, rt) or call.Missing() }
//	session, err := def.Open(instance)                  // Instance{New: true, ID: fresh} starts one
//	out := session.Step(ctx, rt, call)                // once per message, in order
//	if out.Missing { call.StepMissing(ctx, rt) or call.Missing() }
//	… write out.Out, save session.Instance() when session.Changed() or Completed(), commit …
//
// A Definition may be used by several goroutines at a time; a Session, a Call and a Context belong to one.
package saga
