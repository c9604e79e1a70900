// Package saga is what the author of a long-running process writes with, and the core that decides what
// each of its steps does. It links the standard library only: no clock, no database, no logger.
//
// # Promise
//
// A [Definition] is data about handlers. A [Session] steps messages on one instance, in order and in
// memory, and returns what should happen as an [Outcome]: messages to write, timeouts that went away, a
// failure, a reason to discard. It performs nothing. The same instance, message and [Turn] give the same
// outcome, as far as the handler itself is deterministic.
//
//  1. A step starts from decoded bytes, so nothing works only because two messages shared a batch.
//  2. A step that fails leaves no trace: state, pending timeouts and completion are those of the last good step.
//  3. What a handler asks for is encoded when it asks, so later changes to a message do not travel.
//  4. A fault (a body too large, text that is not UTF-8, a timeout nobody handles) fails the step
//     permanently, whatever the handler returns.
//
// # States of an instance
//
//	absent ──start message──▶ live ──Complete──▶ absent
//	                           ▲ │
//	                           └─┘ handled message, answer, timeout
//
// A key can live again after Complete; the new life has a new instance id, so answers and timeouts of the
// old life never reach it.
//
// # Failures
//
// [PermanentError] means that another attempt cannot help. [RetryAfterError] names the wait. [PanicError]
// carries the stack of a handler that panicked. Every other error is an ordinary failure, and the policy of
// the endpoint decides. [ErrState] and [ErrNewerState] come from [Definition.Open].
//
// # For runtimes
//
//	call, err := def.Prepare(delivery, codec)           // decode, find the key; an error is permanent
//	… load the instance by call.Instance() or call.Key() …
//	if none and !call.MayStart() { call.StepMissing(ctx, turn) or call.Missing() }
//	session, err := def.Open(instance)                  // Instance{New: true, ID: fresh} starts one
//	out := session.Step(ctx, turn, call)                // once per message, in order
//	… write out.Out, save session.Instance() when session.Changed() or Completed(), commit …
//
// Read define.go for what an author declares, context.go for what a handler may ask, step.go for what a step is.
package saga
