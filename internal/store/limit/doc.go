// Package limit lets at most so many do a thing at once, in the whole cluster, and lets an operator change how many
// while it goes on. It owns the tables concurrency_limit, slot and ticket.
//
// # Promise
//
// A limit of n never has more than n holders, measured by the database's clock. Holders that had a slot before the
// limit was lowered may finish. What they hold counts as taken, so no slot is granted before there are fewer than n. It
// does not matter what crashes, sleeps or changes the limit at which moment, because a slot is a row: the statement
// that grants it holds its lock, and so does the one that disables it.
//
// Holders that wait are served in the order in which they came. Each gets one slot, if there is one, before another
// gets a second. The slots of a holder that died become free when its time is over, and those of one that has called
// ReleaseAll at once.
//
// A slot carries an epoch that grows with each grant. If a slot has another holder meanwhile, the old holder learns it
// in the transaction of its finish (Held), and frees nothing (QueueRelease).
//
// # What is not promised
//
// The promise is about grants. A process that slept through the end of its time may go on computing for a moment, and
// calling other systems. What it writes here is refused. What it does elsewhere is not, unless it gives the epoch to
// the other system, and that refuses smaller ones.
//
// # States of a slot
//
//	free       enabled, and not held, or its holder's time is over
//	held       by a holder, until it is given back or its time is over
//	permitted  locked by a transaction, and free again when that ends in whatever way
//	draining   held, and disabled because the limit was lowered: it is not granted again when it comes back
//	disabled   not held; deleted if its number is above the limit, and its epoch is remembered
//
// # States of a ticket
//
// A holder that got less than it wanted has a ticket, which counts while the holder asks again within its patience. A
// ticket that has expired is passed over, and keeps its number for a holder that was only slow.
//
// # Locks
//
// Grants, heartbeats and permits pass over rows that are locked. Held, QueueRelease, ReleaseAll and a change of the
// limit wait for them, in the order of (name, no). So a transaction calls Held before it locks anything else that other
// transactions wait for.
//
// # Failures
//
// An error is one of the connection, of the schema, or of a wrong argument. ErrNoLimit says that there is no limit
// of that name. After an error of Renew nothing is known about the slots, until their time is over.
//
// The functions of SQL are in the migration named limits.
package limit
