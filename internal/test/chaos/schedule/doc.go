// Package schedule runs a thousand manifests that are due every second, on server processes that are killed and frozen,
// while the session that holds the evaluation's lock is terminated, and the database's clock jumps forward and back.
//
// # What it finds
//
// A handler writes an effect for each message, in the transaction that ends its run. When the breaking is over and the
// servers have caught up with the clock, every manifest must have one run and one effect for each of its seconds, from
// its first to the last that was due:
//
//   - missing, double: due times without a run, or with several.
//   - lost, doubled, invented: due times without an effect, with several, and effects that were not due.
//   - open: runs that did not succeed.
//   - strange: runs that were not due.
//
// It goes through the guards: all of them, then without the advisory lock, without the lease, and without both. With
// -broken the unique indexes are dropped as well. Then doubles are expected, and their absence is the failure: it would
// mean that the test cannot see the race.
//
// libfaketime moves the database's clock. make installs it on Debian; without it (-clock=false) the clock stays.
package schedule
