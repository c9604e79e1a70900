// Package hooks calls functions of the user that watch messages go out and transactions end. A function that panics,
// ends its goroutine or does not return costs no message and no process.
package hooks
