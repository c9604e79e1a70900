// Package leased is the engine of endpoints whose handlers run outside of transactions.
//
// It promises that a handler runs with no transaction open, and that what it sends is written, together with the end of
// its message, only while the claim on the message stands. A message is in one of these states:
//
//   - due: a row of the queue that is not claimed, or whose last claim has ended with its lease.
//   - claimed: the row names this process, and is due when the lease ends. It waits for a free handler, or in the lane
//     of its key behind others. A message that processes died with waits in quarantine, and is run alone.
//   - running: its handler runs. The lease is extended three times in its length.
//   - ended: the handler has returned, and the row waits for the next finish. One transaction deletes the rows of
//     many messages, and writes their sends, retries and dead letters.
//
// The engine itself is an [Engine]. It is made for one Run; [Needs] is all that it knows of its endpoint.
//
// Failures: a process that cannot extend a lease gives the claim up before the lease ends, cancels the handler with
// [ErrClaimLost] and writes nothing of it. A process that dies leaves its claims to their leases; the claim after that
// counts the death in the row. A finish of unknown outcome is tried again, and finds out by the rows whether it
// has committed. An error that needs a human ends Run; all others are logged and tried again.
package leased
