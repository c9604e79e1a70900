// Package crash kills workers at every statement, loses replies, breaks connections and restarts Postgres, and counts
// every message.
//
//	go run ./internal/test/chaos -scenario crash                              all phases, about five minutes
//	go run ./internal/test/chaos -scenario crash -workload sagas -phase walk
//
// # Promise
//
// After every phase each message that was sent stands in exactly one place, the steps of every saga instance are
// numbered without gap or repetition, the versions of every row of the saga table have no gap, no key ever had two
// instances, no timeout fired after it was cancelled, the ids that are remembered are those that were given, and
// Postgres counted no deadlock. What was lost or doubled is printed with its story.
//
// # How it can know
//
// The workers are processes, each behind a fault proxy of its own. The parent sends messages in transactions that also
// write into the ledger what was sent and where it must end. A plain handler writes its effect into the ledger. A saga
// has no transaction to write with: each of its steps sends a numbered account of itself to a handler that does. A
// trigger on the saga table records every version of every row.
//
// # Phases
//
// Each phase begins with empty tables, breaks something while messages flow, then lets the workers finish in peace and
// checks everything. The phases run for plain handlers alone ("bare"), and for these together with sagas of both stores
// ("sagas").
//
//   - walk: a worker is killed before and after the nth passing of every statement that a clean run has shown.
//   - replies: replies of COMMIT are lost, and COMMITs that never arrive; the process lives on.
//   - cuts: connections break at random statements; the process lives on.
//   - random: a worker is frozen at a random moment, and killed if the database shows an open batch of it.
//   - restarts: Postgres is restarted under load, in order and as after a crash.
//
// A kill is in flight when the database shows, to another connection, a transaction of that worker which has an id: it
// has locked at least one message. The worker is frozen before the parent looks, so that it cannot end the batch
// between the look and the kill.
//
// # Failures
//
// A worker that ends without having been killed, a queue that does not become empty, and a statement that the walk
// never struck are violations too.
package crash
