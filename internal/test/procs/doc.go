// Package procs starts a program's own binary again as worker processes, and freezes, kills and replaces them. The
// examples use it, and the programs that break things on purpose.
//
// # Promise
//
// When Kill returns, the worker has ended, and no line of its code has run since the kill. A worker that ends by itself
// is an error that holds the end of its standard error. Workers end when their parent ends, however it ends, because
// their standard input ends with it.
//
// # The two ends
//
// The parent starts one worker with Start, from a Job; Workers keeps several places filled. The worker's main asks
// IsWorker before anything else, and its work begins with Attend:
//
//	if procs.IsWorker(workerVariable) {
//		return work(ctx)
//	}
//	…
//	w := worker{}
//	ctx, err := procs.Attend(ctx, workerVariable, &w)
//
// The context that Attend returns ends when the parent asks the worker to end. The worker then finishes what it has in
// hand.
//
// # States
//
// A process runs, is frozen (Freeze, Thaw), or has ended: by Kill, because it was asked to (Stop, or the end of the
// context of Wait), or by itself.
//
// # Failures
//
// Start fails when the binary cannot be started. Wait fails when a worker ended by itself, or with an error after it
// was asked to end. Freeze, Thaw and Kill do nothing to a process that has ended.
package procs
