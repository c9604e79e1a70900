// Package eddatest gives tests a Postgres.
//
//	func TestOrders(t *testing.T) {
//		pool := eddatest.Pool(t) // a new database with the tables of Edda
//		b, err := bus.New(pool, bus.Options{})
//		…
//	}
//
// # Promise
//
// Each call of DSN or Pool makes a new database, which is dropped when the test ends, so tests may run in parallel. It
// is on the server of DATABASE_URL, or on a private server made from an installed Postgres. All tests of a process
// share the private server, and it leaves nothing behind. No test skips for want of a Postgres: it fails with a remedy.
//
// A saga alone needs no Postgres: see package sagatest. Package memory is a whole bus without one.
package eddatest
