// Package run owns goroutines. Everything in Edda that runs beside its caller is started by a Group and
// waited for by the function that made the Group, so that nothing outlives the Run that needed it. A Gate
// does the same for calls from outside: Close waits for those that have begun.
//
// [Ends] is the exception: a function of the user may never return, and then the Run ends without it.
//
// Failures: a member that panics takes the program down, as any goroutine does; members that run
// handlers recover before it comes to that.
package run
