// Package migrate brings a schema to the version of this program. It runs the files of package migrations with goose.
// It is a separate package so that programs that only run endpoints do not link goose.
//
//	err := migrate.Up(ctx, pool, migrate.Options{})          // the tables, by the schema's owner
//	all, err := migrate.Status(ctx, pool, migrate.Options{}) // which migrations are applied
//	script, err := migrate.Grants("", migrate.Roles{Runtime: "shop"})
//
// Promise: after Up has returned nil the schema is complete. Any number of processes may call Up at once: each
// migration is one transaction that first inserts its row into the table migration, so one process applies it, and the
// others wait and then skip it. Up holds no session lock, so it works through PgBouncer in transaction mode and with a
// pool of one connection. If the schema is up to date, Up only reads, and needs no right to create objects.
//
// A migration waits at most two seconds for a lock, and is then rolled back and tried again, for a minute. Tables and
// functions that create tables do not depend on the search_path of the session.
//
// Failures: if a migration fails, the schema stays at the previous one, and Up may be called again. Up refuses
// Postgres older than 14, and databases in an encoding other than UTF-8.
//
// SQL returns the migrations as a script for psql, for databases whose owner does not run Go programs. Grants returns
// a script with the rights of roles.
package migrate
