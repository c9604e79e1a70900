// Package permits kills the program replay, which is written as a user writes one, while several processes of it replay
// an event log.
//
// # What it finds
//
//   - too few: fewer kills in flight than were asked for.
//   - different: the check of the program, which compares its database with the log, found a difference.
//
// A process of the program that fails is a failure too.
//
// # What a kill in flight is
//
// A process is frozen at a random moment and killed only if ten looks from another connection, over 100 ms, show the
// same transaction open, with row locks taken on a queue, waiting for its client. Otherwise it goes on. After the kill
// Postgres is asked what became of the transaction: a kill is in flight if it was rolled back.
package permits
