// Command limits puts two promises of leased endpoints to the test, in worker processes that are killed and stopped at
// random: that of a cluster-wide limit, which changes all the time, and that of Ordered: Strict.
//
//	make limits
//	make order
//
// # What is counted under a limit
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
// # What is counted in order
//
// 20 keys have 1,000 messages each, which are all there at the beginning. One run of a handler in twenty fails.
// Handlers write into a ledger when they begin and end, and whether their process had the lane of the key at that
// moment. A run lasts until its handler has ended, or its process, or the lane of a process that stands still.
// Afterwards:
//
//   - overtakes: runs of messages before which a later one of their key had begun;
//   - together: runs that began while another one of their key lasted;
//   - late: effects that were sent after those of a later message;
//   - lost, doubled: as above;
//   - idle: the longest time in which no handler began, which is to be shorter than a lease and a poll;
//   - zombies: handlers that began in a process which had lost the lane without knowing. They change nothing.
//
// The exit code is 1 when one of these, except the last, is not what it should be.
//
// Reading order: main.go, chaos.go, worker.go, witness.go with witness.sql; order.go, orderly.go with order.sql.
package main
