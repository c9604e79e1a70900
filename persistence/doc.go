// Package persistence keeps saga instances in Postgres. It owns the table saga; no other package names
// that table in SQL.
//
// # Promise
//
// Of all transactions that change an instance from one version, at most one commits, and none that only checked
// it commits after that one. Versions are gapless:
// one more for every batch that changed the instance. At most one instance of a (saga, key) is alive, by
// a unique constraint. Neither loading nor saving ever waits for a row that somebody else holds, so no
// two batches can lock each other out; only starts may wait, and they come first and in key order.
//
// # States
//
// A load finds an instance Absent, Busy (it is there, and another transaction holds it) or Loaded. A
// Busy instance is not a missing one: its messages stay where they are. A save ends for each instance as
// won or lost. Lost means that somebody else started, changed, completed or holds the instance.
//
// # Two stores
//
// Pessimistic locks the row when it is loaded, so that a save cannot lose. Optimistic reads it plainly and finds
// out at the save. Which one is a field of each Ref, so that one query loads a batch for both; everything
// else is the same code.
//
// # Failures
//
// An error is always an error of the connection or of the schema, and the transaction is lost with it.
// What a message could do wrong is refused before it comes here.
//
// Reading order: store.go, load.go, save.go, list.go, statements.sql.
package persistence
