// Package watermill is where Edda and Watermill meet: any Watermill program can publish to an endpoint or consume a
// queue of Edda's, and Edda's queues are a Pub/Sub for Watermill's Router and CQRS component.
//
// # Promise
//
// What Publish accepted is in the queue, all of a call or none of it, and is received in that order. A message leaves
// its queue only when a receiver acked it, or when a SubscriberOptions.Policy gave it up. UUID, metadata and payload
// arrive as they were published. Outside the database delivery is at least once: a crash between the ack and
// the commit, at most a batch later, delivers again. Both pass Watermill's universal suite.
//
// # Three ways
//
//   - Publisher and Subscriber, over a *bus.Bus, with wake-up: for Go programs that have Edda.
//   - SchemaAdapter and OffsetsAdapter, for the Publisher and Subscriber of watermill-sql: for programs that have only
//     that. A receiver that writes through the transaction in the message's context (sql.TxFromContext) commits it
//     with the ack: exactly once. Mind that watermill-sql gives a nacked message out again in the same
//     transaction, with what the first try wrote: answer such a failure by not answering, or by a savepoint.
//   - Middleware, for Watermill's middleware around the handlers of an endpoint.
//
// And across the border: NewRelay gives the messages of a queue to any Watermill Publisher, and NewIntake brings those
// of any Watermill Subscriber in, each id once. See docs/guide/outbox.md and docs/guide/inbox.md. A BatchPublisher is
// given many messages at a time, and a Subscriber that marks its messages InOrder may have many in hand; the module
// bus/watermill/jetstream has both.
//
// A topic is a queue, hence an endpoint's name: [a-z][a-z0-9_.-]{0,62}. Any other is refused. With a ConsumerGroup a
// topic is a kind of events, and each group has a queue of its own. The metadata edda_kind is the kind; a message
// without it is a DefaultKind, which no saga handles.
//
// # States of a message
//
// Queued; taken, by the row lock of an open transaction; given out; acked; gone with the commit of its batch. A
// Subscriber is an endpoint whose step waits for the answer. So a transaction is open while receivers work: at most
// AckDeadline for one message, and a batch begins no other after 50 ms. A slow receiver holds one connection and one
// transaction, and holds back vacuum for as long; work of minutes belongs elsewhere. What is behind a message in hand
// stays locked for the batch's time, and is left to others after it.
//
// A nack, or no answer in time, puts the message back at its place, without a count of attempts, and it comes first
// again after some 50 ms. So one that can never be handled blocks the queue of a Subscriber without a Policy. With one
// the attempt counts, others overtake, and the policy may end it among the dead letters.
//
// # Failures
//
// A lost connection loses the batch: what was acked in it is delivered again. The Subscriber keeps its channel and
// starts again until it is closed. Publish returns *bus.OutcomeUnknownError when the connection broke during the
// commit, and publishing again may then make a second message: a UUID is not remembered.
//
// Saga messages do not pass through Watermill's Router, which acks and publishes in separate acts: write a saga where
// they belong together.
//
// An Intake acks what is committed. While the database is away it nacks, with a back-off; a message that cannot be one
// of this database, or with which a function of its options panics, becomes a dead letter with its bytes and is acked.
//
// # Log
//
// A Relay logs as bus does, and so does the endpoint of a Subscriber. docs/reference/log.md lists the texts.
package watermill
