// Package leased is the engine of endpoints whose handlers run outside of transactions.
//
// It promises that a handler runs while no transaction is open, and that its sends are written, together with the end
// of its message, only while the claim on the message is in force. A message is in one of these states:
//
//   - due: a row of the queue that is not claimed, or whose last claim has ended with its lease.
//   - claimed: the row names this process, and is due when the lease ends. It waits for a free handler, or in the
//     lane of its key behind others. A message that processes died with waits in quarantine, and is run alone.
//   - running: its handler runs. The lease is extended three times in its length.
//   - ended: the handler has returned, and the row waits for the next finish. One transaction deletes the rows of
//     many messages, and writes their sends, retries and dead letters.
//
// The engine itself is an [Engine], made for one Run; [Needs] are its dependencies and the properties of its
// endpoint.
//
// Failures: a process that cannot extend a lease gives the claim up before the lease ends, cancels the handler with
// [ErrClaimLost] and writes nothing of it. If a process dies, its claims end with their leases; the next claim counts
// the death in the row. A finish with an unknown outcome is tried again, and the rows show whether it has committed.
// An error that needs a human ends Run; all others are logged and the statement is tried again.
package leased
