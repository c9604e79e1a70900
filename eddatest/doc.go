// Package eddatest gives tests a Postgres.
//
//	func TestOrders(t *testing.T) {
//		pool := eddatest.Pool(t) // a database of its own, with the tables of Edda
//		b, err := bus.New(pool, bus.Options{})
//		…
//	}
//
// # Promise
//
// Each call of DSN or Pool makes a database of the test's own, which is dropped when the test ends, so tests may run in
// parallel. It is on the server that DATABASE_URL names, or on a private one made from an installed Postgres, which all
// tests of a process share and which leaves nothing behind. No test skips for want of a Postgres: it fails with what to
// do.
//
// A saga alone needs no Postgres: see package sagatest. Package memory is a whole bus without one.
package eddatest
