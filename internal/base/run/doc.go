// Package run owns goroutines. Every goroutine in Edda is started by a Group and waited for by the function that made
// the Group, so that no goroutine outlives the Run that needed it. A Gate does the same for calls from outside: Close
// waits for calls that have begun.
//
// [Ends] is the exception: a function of the user may never return, and then the Run ends without it.
//
// Failures: a member that panics ends the process, as any goroutine does; members that run handlers recover the
// handlers' panics.
package run
