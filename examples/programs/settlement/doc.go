// Command settlement adds up a day's payments and pays them out, each night at half past two: a manifest has the time,
// the saga's key is the day for which it fires, and so a day is settled once.
//
//	DATABASE_URL=postgres://… go run ./examples/programs/settlement
//
// If no process runs in a night, the settlement follows when a server runs again (MisfireAll). scheduler.Store.Backfill
// settles days before the first start of the program.
package main
