// Command settlement adds up a day's payments and pays them out, once a day: the saga's key is the day, so a second start of the
// same day finds the first.
//
// The start comes from the command line or from cron. With package scheduler, which is not in this version, it will be a manifest;
// the key function reads the day of its firing already.
//
//	DATABASE_URL=postgres://… go run ./examples/programs/settlement -day 2026-11-20
package main
