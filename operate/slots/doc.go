// Package slots reports which process holds each slot of the limits, since when, and for what.
//
//	r, err := slots.New(pool, "edda")
//	held, err := r.Holders(ctx, "billing")
//
// # Promise
//
// Holders sends a few bounded statements, each with its own snapshot, locks nothing and needs only SELECT.
//
// # Gaps
//
// No table stores which handler has which slot, so if a process handles several messages, each of its slots lists all
// of them. A message that is among more than 2,000 that are due later is missed. A batch holds its slot by its
// transaction; Postgres shows the start of that transaction only to the batch's own role, and to roles with the
// rights of pg_read_all_stats.
package slots
