// Package limit limits how many processes do something at the same time, in the whole cluster, and lets an operator
// change the limit at run time. It owns the tables concurrency_limit, slot and ticket.
//
// # Promise
//
// A limit of n never has more than n holders, measured by the database's clock. Holders that had a slot before the
// limit was lowered may finish. Their slots count as taken, so no slot is granted before there are fewer than n. This
// holds whatever crashes, stalls or changes the limit at any moment, because a slot is a row: the statement that
// grants it holds its lock, and so does the statement that disables it.
//
// Waiting holders are served in the order of their arrival. Each gets one slot, if there is one, before any gets a
// second. The slots of a holder that died become free when its lease ends; ReleaseAll frees them at once.
//
// A slot carries an epoch that grows with each grant. If a slot has been granted again, the old holder finds out in
// the transaction of its finish (Held), and frees nothing (QueueRelease).
//
// # Outside the promise
//
// The promise is about grants. A process that was paused past the end of its lease may continue to compute for a
// moment, and call other systems. Its writes here are refused. Its effects elsewhere are not, unless it passes the
// epoch to the other system, and that refuses smaller ones.
//
// # States of a slot
//
//	free       enabled, and not held, or its holder's lease is over
//	held       by a holder, until it is released or its lease is over
//	permitted  locked by a transaction, and free again when that ends in whatever way
//	draining   held, and disabled because the limit was lowered: it is not granted again after its release
//	disabled   not held; deleted if its number is above the limit, and its epoch is kept in the limit
//
// # States of a ticket
//
// A holder that got less than it wanted has a ticket, which counts while the holder repeats its request within its
// patience. An expired ticket is skipped, and keeps its number for a holder that was only slow.
//
// # Locks
//
// Grants, heartbeats and permits skip locked rows. Held, QueueRelease, ReleaseAll and a change of the limit wait for
// locks, in the order of (name, no). So a transaction calls Held before it locks anything else that other
// transactions wait for.
//
// # Failures
//
// Errors come from the connection, from the schema, or from a wrong argument. ErrNoLimit means that no limit of that
// name exists. After an error of Renew the state of the slots is unknown, until their lease is over.
//
// The SQL functions are in the migration named limits.
package limit
