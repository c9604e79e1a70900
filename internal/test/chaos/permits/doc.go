// Package permits kills examples/permits, a program as a user writes it, while several processes of it replay a log.
//
// # What it finds
//
//   - too few: fewer kills in flight than were asked for.
//   - different: the example's own check, which compares its database with the log, found a difference.
//
// A process of the example that fails is a failure too.
//
// # What a kill in flight is
//
// A process is frozen at a random moment and killed only if ten looks from another connection, over 100 ms, show the
// same transaction open, with row locks taken on a queue, waiting for its client. Otherwise it goes on. After the kill
// Postgres is asked what became of the transaction: a kill is in flight if it was rolled back.
package permits
