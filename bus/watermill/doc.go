// Package watermill is where Edda and Watermill meet.
//
//	publisher, err := watermill.NewPublisher(b, watermill.PublisherOptions{})
//	subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{})
//	router.AddMiddleware(watermill.Together)
//
// docs/guide/watermill.md shows how to use it, and how a program moves here from watermill-sql.
//
// # A topic is a kind
//
// A message that a Publisher publishes to a topic is an event whose kind is the topic. Every endpoint that handles the
// kind gets a copy (with a saga, or with any other handler), every consumer group of a Subscriber, and the Subscriber
// without a group. So a plain Watermill message starts a saga, and what a saga or a manifest sends reaches a Router.
// UUID, metadata and payload arrive as they were published; the metadata edda_kind has the kind.
//
// A kind is also the name of a queue here: [a-z][a-z0-9_.-]{0,62}. Other topics need the option Kind, which names their
// kind.
//
// # Who runs a handler
//
//   - A stock Router with a Subscriber. It acks and publishes in separate acts; with the middleware Together both are
//     one transaction.
//   - An endpoint: Handle, HandleTx, Consume and ConsumeTx make handlers of Watermill parts of one, beside sagas, with
//     its policy, its limits and its shutdown; the package eddacqrs does so for handlers of the CQRS component.
//     Middleware puts Watermill's middleware around other handlers.
//   - The stock Publisher and Subscriber of watermill-sql, over SchemaAdapter and OffsetsAdapter: for programs that
//     have only that. A receiver that writes through sql.TxFromContext commits it with the ack. Mind that watermill-sql
//     gives a nacked message out again in the same transaction, with what the first try wrote: answer such a failure by
//     not answering, or by a savepoint.
//
// Across the border, NewRelay gives the messages of a queue to any Watermill Publisher, and NewIntake brings those of
// any Watermill Subscriber in, each id once. See docs/guide/outbox.md and docs/guide/inbox.md. A BatchPublisher is
// given many messages at a time, and a Subscriber that marks its messages InOrder may have many in hand; the module
// bus/watermill/jetstream has both. Package scheduler/remote/broker submits the runs of manifests to a Publisher.
//
// # Promise
//
// What Publish accepted is in the queues, all of a call or none of it, and is received in that order. A message leaves
// its queue only when a receiver acked it, or when a SubscriberOptions.Policy gave it up. If it was acked, and nothing
// is subscribed to what was published with its context, it is a dead letter, and nothing of it is sent.
//
// What is published with the context of a message in hand, and what HandleTx writes through its transaction, commits
// with the end of that message: exactly once. Effects outside of the database happen at least once: a crash between the
// ack and the commit, at most a batch later, delivers again. Both pass Watermill's universal suite.
//
// # States of a message of a Subscriber
//
// Queued; taken, by the row lock of an open transaction; given out; acked; gone with the commit of its batch. A
// Subscriber is an endpoint whose step waits for the answer. So a transaction is open while receivers work: at most
// AckDeadline for one message, and a batch begins no other after 50 ms. A slow receiver holds one connection and one
// transaction, and holds back vacuum for as long; work of minutes belongs in a Handle, which holds none.
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
// An Intake acks what is committed. While the database is away it nacks, with a back-off; a message that cannot be one
// of this database, or with which a function of its options panics, becomes a dead letter with its bytes and is acked.
//
// # Log
//
// A Relay logs as bus does, and so does the endpoint of a Subscriber. docs/reference/log.md lists the texts.
package watermill
