// Package migrate brings a schema to the version this program knows. It runs the files of package
// migrations with goose, and is a package of its own so that programs which only run do not link goose.
//
//	err := migrate.Up(ctx, pool, migrate.Options{})          // the tables, by the schema's owner
//	all, err := migrate.Status(ctx, pool, migrate.Options{}) // which migrations are applied
//	script, err := migrate.Grants("", migrate.Roles{Runtime: "shop"})
//
// Promise: after Up has returned nil the schema is complete. Any number of processes may call Up at once: each
// migration is one transaction that first inserts its row into the table migration, so one process applies it, and the
// others wait and find it done. Up holds no session lock, so it works through PgBouncer in transaction mode and with a
// pool of one connection. Up only reads a schema that is up to date, and then needs no right to create anything.
//
// A migration waits two seconds for a lock at most, and is then rolled back and tried again, for a minute. Tables and
// functions that make tables do not depend on the search_path of the session.
//
// Failures: if a migration fails, the schema stays at the one before it, and Up may be called again. Up refuses
// Postgres older than 14, and databases in another encoding than UTF-8.
//
// SQL returns the same as a script for psql, for databases whose owner does not run Go programs. Grants returns a
// script with the rights of roles.
package migrate
