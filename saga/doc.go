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
//  1. A step starts from decoded bytes, so the other messages of its batch do not influence it.
//  2. A step that fails changes nothing: the state, the pending timeouts and the completion remain as the last
//     successful step left them.
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
// After Complete a message can start the key again, with a new instance id, so answers and timeouts of the earlier
// instance never reach the new one. With Options.Remember, a message can start the key again only after that duration.
//
// # Failures
//
// [PermanentError] means that retrying cannot help. [RetryAfterError] has the time to wait. [PanicError] has the
// stack of a handler that panicked. The policy of the endpoint decides about every error. [Definition.Open] returns
// [ErrState] and [ErrNewerState].
//
// # From outside
//
// StatesOf reads the states of instances as values of their type: from a bus, or from an instance that a watch read.
//
// # For runtimes
//
//	call, err := def.Prepare(delivery, codec)           // decode, find the key; an error is permanent
//	… load the instance by call.Instance() or call.Key() …
//	if absent and !call.MayStart() { call.StepMissing(ctx, rt) or call.Missing() }
//	session, err := def.Open(instance)                  // Instance{New: true, ID: fresh} starts one
//	out := session.Step(ctx, rt, call)                // once per message, in order
//	if out.Missing { call.StepMissing(ctx, rt) or call.Missing() }
//	… write out.Out, save session.Instance() when session.Changed() or Completed(), commit …
//
// A Definition is safe for concurrent use. A Session, a Call and a Context belong to one goroutine at a time.
package saga
