// Package migrations contains Edda's schema as plain SQL, and brings a schema to the version of this program. It runs
// the files with goose. Programs that only run endpoints need not import it, and then do not link goose.
//
//	err := migrations.Up(ctx, pool, migrations.Options{})          // the tables, by the schema's owner
//	all, err := migrations.Status(ctx, pool, migrations.Options{}) // which migrations are applied
//	script, err := migrations.Grants("", migrations.Roles{Runtime: "shop"})
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
// Postgres older than 14, and databases in an encoding other than UTF-8. An endpoint, a scheduler or a relay that
// finds an older schema returns ErrNotMigrated, and one that finds a schema with a newer file whose first line is
// "--! breaking-change" returns ErrTooNew. Other newer files only add objects that older programs ignore.
//
// SQL returns the migrations as a script for psql, for databases whose owner does not run Go programs. Grants returns
// a script with the rights of roles.
//
// The files, applied in the order of their names, make the whole schema. A released file is never changed, and there
// are no down migrations: an error is corrected by a new file. :schema and :'schema' stand for the schema's name, as
// identifier and as literal. The table migration of the schema has one row for each applied file. A file may change
// tables that are in use, so it locks few tables, because it keeps each lock until its end; it changes queues one
// transaction at a time, because locks on thousands of tables do not fit into max_locks_per_transaction; and it builds
// no index of a large table. The index of file 16 is an exception: writers of discarded wait while it is built, about
// a second for each million rows.
package migrations
