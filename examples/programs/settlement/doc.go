// Command settlement adds up a day's payments and pays them out, each night at half past two: a manifest says when, the
// saga's key is the day for which it fires, and so a day is settled once.
//
//	DATABASE_URL=postgres://… go run ./examples/programs/settlement
//
// A night in which nothing ran is made up for when a server runs again (MisfireAll). Days before the program was there
// are settled by scheduler.Store.Backfill.
package main
