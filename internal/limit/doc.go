// Package limit lets at most so many do a thing at once, in the whole cluster, and lets an operator change how many
// while it goes on. It owns the tables concurrency_limit, slot and ticket.
//
// # Promise
//
// By the database's clock a limit of n has never more than n holders, except for those who held a slot before it was
// lowered to n: they go on, and what they hold counts as taken, so that nobody gets a slot before there are fewer than
// n. It does not matter what crashes, sleeps or changes the limit at which moment, because a slot is a row: the
// statement that grants it holds its lock, and so does the one that disables it.
//
// Those who wait are served in the order in which they came; each of them that can be is given one slot before
// somebody gets a second. A holder that died is followed when its time is over, and one that said farewell at once.
//
// A slot carries an epoch that grows with each grant. Whoever finishes under a slot that has been given to another
// meanwhile learns it in the transaction of the finish (Held), and frees nothing (QueueRelease).
//
// # What is not promised
//
// The promise is about grants. A process that slept through the end of its time may go on computing for a moment, and
// calling others. What it writes here is refused; what it does elsewhere is not, unless the receiver is given the epoch
// and refuses smaller ones.
//
// # States of a slot
//
//	free       enabled, and nobody holds it, or its holder's time is over
//	held       by a holder, until it is given back or its time is over
//	seated     locked by a transaction, and free again when that ends in whatever way
//	draining   held, and disabled because the limit was lowered or paused: when it is given back it is not granted again
//	disabled   nobody holds it; deleted when its number is above the limit, and its epoch is remembered
//
// # States of a ticket
//
// A holder that got less than it wanted has a ticket, which counts while the holder asks again within its patience. A
// ticket that has expired is passed over, and keeps its number for a holder that was only slow.
//
// # Locks
//
// Grants, heartbeats and seats pass over rows that are locked. Held, QueueRelease, Farewell and a change of the limit
// wait for them, in the order of (name, no). So a transaction that uses Held does so before it locks anything else that
// others wait for.
//
// # Failures
//
// An error is one of the connection, of the schema, or of a wrong argument. ErrNoLimit: a limit was to be paused that
// is not there. After an error of Renew nothing is known about the slots, until their time is over.
//
// Reading order: statements.sql, store.go, grant.go, keep.go, set.go. The functions of SQL are in the migration named
// limits.
package limit
