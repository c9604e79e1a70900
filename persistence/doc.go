// Package persistence stores saga instances in Postgres, and records and items of a program's own. It owns the table
// saga; no other package names that table in SQL.
//
//	customers, err := persistence.NewRecords[Customer]("", "customer")
//	ann, err := customers.Get(ctx, tx, "ann") // tx, a connection or a pool
//	ann, err = customers.Change(ctx, tx, "ann", func(c *Customer) error { c.Orders++; return nil })
//
// Programs reach instances through a bus, records with NewRecords, and items with NewItems. A Store is the bus's own:
// its Save is a part of the pipeline with which a batch commits.
//
// # Promise
//
// Of all transactions that change an instance from one version, at most one commits, and a transaction that only
// compares the version does not commit after it. Versions have no gaps: each batch that changes an instance adds one. A
// unique constraint keeps at most one instance of a (saga, key) alive. Load and Save never wait for a row that another
// transaction holds, so two batches cannot deadlock. Only starts may wait; they come first and in the order of keys.
//
// # States
//
// A load finds an instance Absent, Busy (it exists, and another transaction holds it) or Loaded. A Busy instance is not
// missing: its messages stay in the queue. A save wins or loses each instance. It loses if another transaction has
// started, changed or completed the instance, or holds it.
//
// # Two stores
//
// Pessimistic locks the row at the load, so that a save cannot lose. Optimistic reads the row, and the save compares
// the version. The choice is a field of each Ref, so one query loads a batch for both stores. All other code is the
// same.
//
// # Failures
//
// Every error is an error of the connection or of the schema, and ends the transaction. The caller has refused faults
// of messages before.
//
// A Store is safe for concurrent use; a Save belongs to one goroutine.
//
// # Records
//
// Records are values of a program's own, each with a version, in the table record, which no other package names either.
// They share with sagas the comparison of versions, and nothing else.
//
// # Items
//
// Items are what a program collects beside a saga, append-only, in the table saga_item, which no other package names.
// An addition waits for nothing but another one of the same key, and two of one key add one item.
package persistence
