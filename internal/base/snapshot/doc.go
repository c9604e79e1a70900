// Package snapshot finds the sessions, slots and standbys that keep Postgres from removing dead rows.
//
// # Promise
//
// A Look reads catalog views, with one statement for all holders and one for the table with the most dead rows. It
// locks nothing, and needs no right beyond SELECT on the schema's tables. Pin.Remedy returns advice for an operator.
//
// # Failures
//
// A role without pg_read_all_stats cannot read the queries of other roles' sessions, nor when their transactions
// began; the remedy then names the grant.
package snapshot
