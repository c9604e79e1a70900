// Package plan computes when a manifest is due, and decides about due times that passed. It does no I/O, and reads no
// clock: the caller passes the time.
//
// # Promise
//
// [Plan.Decide] depends only on the definition, the stored due time and the current time, so servers that decide
// again decide the same. Its cost does not grow with the number of due times that passed. A due time never comes
// back: the next one is always later.
//
// When a clock is changed, Cron follows one rule: a time that the expression includes is due when the clock first
// shows it or a later one. Every counts elapsed time from its first due time. Exclusions are judged by the wall clock
// of the zone, in UTC for Every and Once.
//
// # States
//
// A [Definition] is stored; [Definition.Compile] checks it and makes a [Plan], which does not change.
//
// # Failures
//
// Compile returns an error that names the field and its limit. Nothing else fails, except [Plan.Between], which returns
// [ErrTooMany].
package plan
