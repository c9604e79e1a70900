// Command border measures and breaks the way from one database to another: relay, NATS JetStream, intake. "make border"
// runs it.
//
// # What it shows
//
//   - speed: how many messages a second a relay gives to JetStream, from a backlog: in batches, and over watermill-nats
//     by Parallel; and by the stream's storage.
//   - intake: how many messages a second an intake takes from JetStream, from a backlog in the stream, with one
//     consumer.
//   - lag: at 1,000 messages a second, how long after its commit here a message is in the queue of the other database.
//     The line has the rate that was reached, and a warning follows when it was not the one asked for: a busy machine
//     does not keep it.
//   - faults: three JetStream nodes and four workers, each a process, are killed with SIGKILL at random and one at a
//     time by kind, or frozen with SIGSTOP for longer than a lease lasts and go on after it, and Postgres is ended as
//     by a crash, for as long as -faults says. Then the checker counts.
//
// Lag and faults are shown over package jetstream (batches), and then over watermill-nats; -over leaves one out.
//
// Everything runs on this machine: a Postgres with two databases, the nodes, and this program.
//
// # Promise
//
// The exit code is 1 when a message was lost, doubled or overtaken by a later one of its key. The line of a phase is
// printed when the phase is over.
//
// # How the checker knows
//
// A message is told by a transaction that writes it into the ledger of its database, and sends it, together. In the
// other database a trigger notes each row that enters the queue, and the handler notes each message in the transaction
// that consumes it. lost is told and not handled; double is handled twice, or entered the queue twice; disorder is a
// message that entered behind a later one of its key. No table of the checker has a constraint that would hide any of
// it.
//
// Reading order: main.go, ground.go (databases and nodes), speed.go, intake.go, way.go
// (relay, stream, intake), lag.go, faults.go with freeze.go and worker.go, verdict.go with border.sql, and
// story.go for when it is broken.
package main
