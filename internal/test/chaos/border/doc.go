// Command border breaks and measures the way from one database to another: relay, NATS JetStream, intake. "make border"
// runs it. It is the part of internal/test/chaos that needs a broker, and a module of its own, so that nobody who uses
// Edda has to link one. Package lab has the flags, the ledger and the verdict.
//
// # What it breaks
//
//   - border: three JetStream nodes and four workers, each a process, are killed with SIGKILL or frozen with SIGSTOP
//     for longer than a lease lasts, and Postgres is ended as by a crash. It finds messages that are lost, doubled,
//     invented or dead, and disorder: a message that entered the queue there behind a later one of its key.
//   - shop: the two services of examples/two-databases, with a Postgres server each, are treated the same way. It finds
//     orders that were not paid or declined once, with the right sum, told to the buyer once, and shipped once if paid;
//     and whatever is left in a database or in the broker.
//   - remote: the scenario of internal/test/chaos/remote over JetStream, whose node is killed, too.
//
// # What it measures
//
//   - speed: how many messages a second a relay gives to JetStream, from a backlog: in batches, and over watermill-nats
//     by Parallel. Then how many an intake takes from a backlog in the stream.
//   - lag: at 1,000 messages a second, how long after its commit here a message is committed in the other database. A
//     warning stands in the line when that rate was not reached.
//
// Border and lag go over package jetstream (batches), and then over watermill-nats; -over names other ways. With -over
// rabbitmq they go over a RabbitMQ of one node, which has to be installed ("make rabbitmq").
//
// # Layout
//
// Package brokers has a Way for each client, nodes what brokers have in common as processes, cluster and rabbit the
// brokers, shop the services of examples/two-databases.
//
// # How the checker knows
//
// A message is told by a transaction that writes it into the ledger of its database, and sends it. In the other
// database a trigger notes each row that enters the queue, and the handler notes each message in the transaction that
// consumes it.
package main
