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
//	go test -tags bouncer ./internal/bouncer
//	PGBOUNCER=/path/to/pgbouncer go test -tags bouncer ./internal/bouncer
//
// Where there is none they fail, and say what to do: none of them skips. The continuous integration looks first, and
// says loudly that it did not run them.
//
// # Reading order
//
// world_test.go (the bouncer, its spoiled sessions, and how a test ends), then the tests: saga_test.go,
// handler_test.go, send_test.go, lease_test.go, schedule_test.go, tool_test.go; few_test.go with fewer sessions than
// workers; load_test.go with processes that are killed; mistake_test.go, what a beginner is told; bench_test.go.
package bouncer
