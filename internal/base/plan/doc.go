// Package plan computes when a manifest is due, and what happens to due times that passed. It does no I/O, and reads no
// clock: the caller passes the time.
//
// # Promise
//
// [Plan.Decide] depends on the definition, the stored due time and the current time alone, so servers that decide again
// decide the same. Its cost does not grow with the number of due times that passed. A due time never comes back: the
// next one is always later.
//
// Cron follows one rule when a clock is changed: a moment that the expression names is due when the clock first shows
// it or a later one. Every counts elapsed time from its first due time. Exclusions are judged by the wall clock of the
// zone, in UTC for Every and Once.
//
// # States
//
// A [Definition] is what is stored; [Definition.Compile] checks it and makes a [Plan], which does not change.
//
// # Failures
//
// Compile returns an error that names the field and its limit. Nothing else fails, except [Plan.Between], which returns
// [ErrTooMany].
package plan
