// Command crash proves with real processes and SIGKILL that the engine loses nothing and does nothing twice.
//
//	go run ./internal/crash                                  all phases, about five minutes
//	go run ./internal/crash -workload sagas -phase walk -point save:after:2
//
// # Promise
//
// It exits with 0 only if, after every phase, each message that was sent stands in exactly one place, the
// steps of every saga instance are numbered without gap or repetition, the versions of every row of the saga
// table are gapless, no key ever had two instances, no timeout fired after it was cancelled, and Postgres
// counted no deadlock. Otherwise it exits with 1 and tells the story of what was lost or doubled.
//
// # How it can know
//
// The parent starts a Postgres of its own and a few worker processes, each behind a fault proxy of its own.
// It sends messages in transactions that also write down, in tables that are not the engine's, what was sent
// and where it must end. A plain handler writes its effect into a table without any unique constraint, so
// that a second effect is seen and not refused. A saga has no transaction to write with: each of its steps
// sends a numbered account of itself to a handler that does. A trigger on the saga table records every
// version of every row.
//
// # Phases
//
// Each phase begins with empty tables, breaks something while messages flow, then lets the workers finish in
// peace and checks everything. The phases are run for plain handlers alone ("bare"), and for these together
// with sagas of both stores ("sagas").
//
//   - walk: the worker is killed before and after the nth passing of every statement a clean run has shown.
//   - replies: replies of COMMIT are lost, and COMMITs that never arrive; the process lives on.
//   - cuts: connections break at random statements; the process lives on.
//   - random: the worker is frozen at a random moment and killed if the database shows an open batch of it.
//   - restarts: Postgres is restarted under load, in order and as after a crash.
//
// A kill is in flight when the database shows, to another connection, a transaction of that worker which has
// an id: it has locked at least one message. The worker is stopped before we look, so that it cannot end the
// batch between the look and the kill.
//
// # Failures
//
// A worker that ends without having been killed, a queue that does not become empty, and a named statement
// that the walk never struck are violations too.
//
// # Reading order
//
// main.go (flags, order of phases), lab.go (what a phase has to work with), slot.go (a worker process and its
// proxy), worker.go, plain.go, account.go (what the workers run), feeder.go (what is sent), ledger.sql and
// check.go with checks.sql (how the outcome is judged), and then a file for each phase.
package main
