// Command schedule puts the promise of the scheduler to the test: server processes run a thousand manifests that are
// due every second, while servers are killed and stopped, the session that holds the evaluation's lock is terminated,
// and the database's clock jumps forward and back.
//
//	make schedule
//
// # What is counted
//
// A handler writes a row for each message, in the transaction that ends its run. When the chaos is over and the servers
// have caught up with the clock, every manifest must have one run and one effect for each of its seconds, from its
// first to the last that was due:
//
//   - missing: due times without a run, or without an effect;
//   - double: due times with more than one run, or more than one effect;
//   - open: runs that did not succeed.
//
// It goes through the guards: all of them, then without the advisory lock, without the lease, and without both. With
// -broken the unique indexes are dropped as well, and then doubles are expected: the exit code is 0 when some were
// seen, which shows that the test can see the race.
//
// The database's clock is moved by libfaketime, which make installs on Debian; without it (-clock=false) the clock
// stays.
//
// Reading order: main.go, chaos.go, server.go, witness.go with witness.sql.
package main
