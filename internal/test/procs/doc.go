// Package procs starts a program's own binary again as worker processes, and freezes, kills and replaces them. The
// examples use it, and the programs that break things on purpose.
//
// # Promise
//
// When Kill returns, the worker has ended, and no line of its code has run since the kill. If a worker ends by
// itself, the error has the end of its standard error. Workers end when their parent ends, however it ends, because
// their standard input ends with it.
//
// # The two ends
//
// The parent starts one worker with Start, from a Job; Workers keeps several places filled. The worker's main first
// calls IsWorker, and its work begins with Attend:
//
//	if procs.IsWorker(workerVariable) {
//		return work(ctx)
//	}
//	…
//	w := worker{}
//	ctx, err := procs.Attend(ctx, workerVariable, &w)
//
// The context that Attend returns ends when the parent requests the end of the worker. The worker then finishes its
// work in hand.
//
// # States
//
// A process runs, is frozen (Freeze, Thaw), or has ended: by Kill, on request (Stop, or the end of the context of
// Wait), or by itself.
//
// # Failures
//
// Start returns an error if the binary cannot be started. Wait returns an error if a worker ended by itself, or with
// an error after a request to end. Freeze, Thaw and Kill do nothing to a process that has ended.
package procs
