// Package pin finds what keeps Postgres from removing dead rows.
//
// # Promise
//
// A Look reads catalog views, with a statement for all holders and one for the table that suffers most. It locks
// nothing, and needs no right beyond SELECT on the schema's tables. Pin.Remedy says what an operator can do.
//
// # Failures
//
// A role without pg_read_all_stats does not see what the sessions of other roles do, nor since when; the remedy then
// names the grant.
package pin
