// Command limits puts the promise of a cluster-wide limit to the test: worker processes run a leased endpoint whose limit is
// changed at random, while they are killed and stopped.
//
//	make limits
//
// # What is counted
//
// A handler writes a row of its own when it begins, with its slot and epoch, and a moment when it ends, both by the
// database's clock and in transactions of their own: a witness that knows nothing of the framework's tables. What it
// sends goes into another table. Afterwards:
//
//   - above: handlers that began while as many ran as the limit allowed. A handler whose process was killed has run
//     until then, one whose process was stopped for longer than the lease until its lease was over;
//   - stale: messages sent by a handler after somebody else had begun in its slot;
//   - lost, doubled: messages without an effect, or with more than one;
//   - unused: the longest time for which less ran than the limit allowed, while messages waited;
//   - starved: workers that got nothing in their life, though it was long enough;
//   - again: at defaults, the longest time from the kill of a worker to the moment its messages ran again.
//
// The exit code is 1 when one of these is not what it should be.
//
// Reading order: main.go, chaos.go, worker.go, witness.go with witness.sql.
package main
