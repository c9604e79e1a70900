// Package persistence stores saga instances in Postgres, and records and items that programs define. It owns the
// tables saga, record and saga_item; no other package names them in SQL.
//
//	customers, err := persistence.NewRecords[Customer]("", "customer")
//	ann, err := customers.Get(ctx, tx, "ann") // tx, a connection or a pool
//	ann, err = customers.Change(ctx, tx, "ann", func(c *Customer) error { c.Orders++; return nil })
//
// Programs access instances through a bus, records with NewRecords, and items with NewItems. A Store belongs to the
// bus: its Save is a part of the pipeline that commits a batch.
//
// # Promise
//
// Of all transactions that change an instance from one version, at most one commits, and a transaction that only
// compares the version does not commit after it. Versions have no gaps: each batch that changes an instance adds one.
// A unique constraint keeps at most one instance of a (saga, key) alive. Load and Save never wait for a locked row,
// so two batches cannot deadlock. Only starts may wait; they come first and in the order of keys.
//
// # States
//
// A load finds an instance Absent, Busy (it exists, but its row is locked) or Loaded. A Busy instance is not missing:
// its messages stay in the queue. A save wins or loses each instance. It loses if a different transaction has
// started, changed, completed or locked the instance.
//
// # Two stores
//
// Pessimistic locks the row at the load, so that a save cannot lose. Optimistic reads the row, and the save compares
// the version. The choice is a field of each Ref, so one query loads a batch for both stores. All other code is the
// same.
//
// # Failures
//
// Errors are errors of the connection or of the schema, and end the transaction. The caller must reject faulty
// messages before it saves.
//
// A Store is safe for concurrent use, and so are Records and Items; a Save belongs to one goroutine.
//
// # Records
//
// Records are values that a program defines, each with a version, in the table record. They have the comparison of
// versions in common with sagas, and nothing else.
//
// # Items
//
// Items are values that a program collects for a saga, append-only, in the table saga_item. An addition waits only
// for an uncommitted addition of the same key, and two additions of one key add one item.
package persistence
