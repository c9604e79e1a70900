// Package slots tells which process holds each slot of the limits, since when, and for what.
//
//	r, err := slots.New(pool, "edda")
//	held, err := r.Holders(ctx, "billing")
//
// # Promise
//
// Holders reads with a few bounded statements, locks nothing and needs only SELECT. What it says was true at one moment
// of each statement.
//
// # What it cannot know
//
// Which handler has which slot is in no table, so that a process with several messages in hand has all of them beside
// each of its slots. A message that is among more than 2,000 that are due later is not seen. A batch holds its slot by
// its transaction; Postgres tells since when that runs to its own role, and to roles with the rights of
// pg_read_all_stats.
package slots
