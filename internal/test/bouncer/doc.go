// Package bouncer holds the tests of Edda behind a real PgBouncer in transaction mode that the ordinary suites cannot
// be.
//
// # Promise
//
// Everything but LISTEN works there, and leaves nothing in a session: no setting, lock, prepared statement, cursor,
// temporary table or channel. Few sessions of Postgres serve all clients, and each transaction gets the one that has
// waited longest, so that code that relies on a session fails, and soon. Each session has been spoiled before: its
// search path finds nothing, and settings that a query could depend on are not what they were.
//
// # How they run
//
// "make bouncer" runs the suites of the packages that are in SQL with pgdev.BouncerVariable set, except the suite of
// the bus and the tests that direct.txt names, which need a session of their own. Then it runs the tests of this
// package: processes and PgBouncer are killed, one session serves many senders, programs are set up wrong, and programs
// connect that are no worker.
//
// The tests here have the build tag bouncer, because not every machine that can build Edda can have a PgBouncer:
//
//	make bouncer
//	go test -tags bouncer ./internal/test/bouncer
//	EDDA_TEST_BOUNCER=cache_statement PGBOUNCER=/path/to/pgbouncer-1.25 make bouncer
//
// Without a PgBouncer they fail, and the error lists the remedies.
package bouncer
