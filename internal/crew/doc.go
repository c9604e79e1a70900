// Package crew runs a program's own binary again as worker processes, and freezes, kills and replaces them. It is for
// the examples and for the programs that break things on purpose.
//
// # Promise
//
// A worker that is killed has ended when Kill returns, and no line of its code has run since the kill. A worker that
// ends by itself is an error that holds the last of what it wrote. Workers end when their parent does, however the
// parent ends: their standard input ends with it.
//
// # The two ends
//
// The parent starts a worker with Start, from a Job, and Crew keeps several places filled. The worker's main asks Hired
// before anything else, and its work begins with Attend:
//
//	if crew.Hired(workerVariable) {
//		return work(ctx)
//	}
//	…
//	w := worker{}
//	ctx, err := crew.Attend(ctx, workerVariable, &w)
//
// The context that Attend returns ends when the parent asks the worker to end, and then the worker finishes what it has
// in hand.
//
// # States
//
// A process runs, is frozen (Freeze, Thaw), or has ended: by Kill, because it was asked to (Dismiss, or the end of the
// context of Wait), or by itself.
//
// # Failures
//
// Start fails when the binary cannot be started. Wait fails when a worker ended by itself, or badly after it was asked
// to. Freeze, Thaw and Kill do nothing to a process that has ended.
//
// Reading order: process.go (one worker, as its parent sees it), task.go (the worker's own end), crew.go (places that
// stay filled), hear.go (what workers say).
package crew
