// Package bouncer holds the tests of Edda behind a real PgBouncer in transaction mode.
//
// # Promise
//
// Everything but LISTEN works there, and leaves nothing in a session: no setting, lock, prepared statement, cursor,
// temporary table or channel. Four sessions of Postgres serve all clients, and each transaction gets the one that has
// waited longest, so that what relies on a session fails, and soon. Each of the sessions has been spoiled before: its
// search path finds nothing, and settings that a query could depend on are not what they were.
//
// # How they run
//
// The tests have the build tag bouncer, because not every machine that can build Edda can have a PgBouncer:
//
//	make bouncer
//	go test -tags bouncer ./internal/test/bouncer
//	PGBOUNCER=/path/to/pgbouncer go test -tags bouncer ./internal/test/bouncer
//
// Where there is none they fail, and say what to do: none of them skips. The continuous integration looks first, and
// says loudly that it did not run them.
package bouncer
