// Package migrate brings a schema to the version this program knows. It runs the files of package
// migrations with goose, and is a package of its own so that programs which only run do not link goose.
//
// Promise: after Up returned nil the schema is complete. Any number of processes may call Up at once:
// each migration is one transaction that begins by inserting its row into the table migration, so one
// process applies it, and the others wait and find it done. No session lock is held, hence it works
// through PgBouncer in transaction mode and with a pool of one connection. A schema that is up to date
// is only read: Up then needs no right to create anything.
//
// Failures: a migration that fails leaves the schema at the one before it, and Up may be called again.
// Postgres older than 14 and databases in another encoding than UTF-8 are refused.
//
// SQL returns the same as a script for psql, for a database whose owner does not run our programs.
//
// Reading order: migrate.go (Up, Status), store.go (what goose asks of us), script.go (SQL).
package migrate
