// Package limits breaks two promises' worth of workers: those of a cluster-wide limit that changes all the time, and
// those of an endpoint that is Ordered: Strict. Both are leased endpoints, so that a frozen process loses what it holds
// without knowing.
//
// # What Limits finds
//
//   - above: handlers that began while as many ran as the limit allowed. A handler whose process was killed ran until
//     then; one whose process was frozen for longer than the lease, until its lease ended.
//   - stale: messages sent by a handler after somebody else had begun in its slot.
//   - twice: two runs with one slot and one epoch.
//   - lost, doubled, invented: messages without an effect, with several, and effects of no message.
//   - unused: a time in which fewer handlers ran than the limit allowed, while messages waited, for longer than a lease
//     and two seconds.
//   - starved: workers that got nothing in their life, though it was long enough.
//   - again: with the default lease, the time from the kill of a worker until all its messages run again.
//
// # What Order finds
//
// Every key has many messages, all of which are there at the beginning. One run of a handler in twenty fails. A run
// lasts until its handler or its process ends, or the lane of a frozen process does.
//
//   - overtakes: runs of messages before which a later one of their key had begun.
//   - together: runs that began while another one of their key lasted.
//   - late: effects that were sent after those of a later message.
//   - lost, doubled, invented: as above.
//   - idle: the longest time in which no handler began, which must be shorter than a lease and a poll.
//
// A zombie is a handler that began in a process that had lost the lane without knowing. It is counted, and changes
// nothing.
package limits
