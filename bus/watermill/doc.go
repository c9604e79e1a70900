// Package watermill connects Edda and Watermill.
//
//	publisher, err := watermill.NewPublisher(b, watermill.PublisherOptions{})
//	subscriber, err := watermill.NewSubscriber(b, watermill.SubscriberOptions{})
//	router.AddMiddleware(watermill.PublishWithAck)
//
// docs/guide/watermill.md shows how to use it, and how to move a program from watermill-sql to this package.
//
// # A topic is a kind
//
// A message that a Publisher publishes to a topic is an event whose kind is the topic. Every endpoint that handles the
// kind gets a copy (with a saga, or with any other handler), and so does every consumer group of a Subscriber, and the
// Subscriber without a group. So a plain Watermill message starts a saga, and the messages of a saga or a manifest
// reach a Router. UUID, metadata and payload arrive as they were published; the metadata edda_kind has the kind.
//
// A kind is also the name of a queue here: [a-z][a-z0-9_.-]{0,62}. Other topics need the option Kind, which returns
// their kind.
//
// # Who runs a handler
//
//   - A stock Router with a Subscriber. It acks and publishes separately; with the middleware PublishWithAck both are
//     one transaction.
//   - An endpoint: Handle, HandleTx, Consume and ConsumeTx make handlers of Watermill parts of an endpoint, together
//     with sagas, with the endpoint's policy, limits and shutdown; CQRSHandlers does so for handlers of the CQRS
//     component. Middleware puts Watermill's middleware around other handlers.
//   - The stock Publisher and Subscriber of watermill-sql, over SchemaAdapter and OffsetsAdapter: for programs that
//     have only those. A receiver that writes through sql.TxFromContext commits its writes with the ack. Note that
//     watermill-sql delivers a nacked message again in the same transaction, with the writes of the first try: do not
//     answer such a message, or use a savepoint.
//
// Across the border, NewRelay publishes the messages of a queue to any Watermill Publisher, and NewIntake ingests the
// messages of any Watermill Subscriber, each id once. See docs/guide/outbox.md and docs/guide/inbox.md. A
// BatchPublisher gets many messages at a time; a Subscriber that marks its messages InOrder may have many in hand; the
// module bus/watermill/jetstream has both. Package scheduler/remote submits runs of manifests to a Publisher.
//
// # Promise
//
// Messages that Publish accepted are in the queues, all messages of a call or none, and are received in that order. A
// message leaves its queue only when a receiver acked it, or a SubscriberOptions.Policy gave it up. If it was acked,
// and a message published with its context has no subscriber, it becomes a dead letter, and nothing is sent.
//
// Messages that are published with the context of a message in hand, and rows that HandleTx writes through its
// transaction, commit with the end of that message: exactly once. Effects outside of the database happen at least once:
// after a crash between the ack and the commit, at most a batch later, the message comes again. Publisher and
// Subscriber pass Watermill's universal suite.
//
// # States of a message of a Subscriber
//
// Queued; taken, by the row lock of an open transaction; delivered; acked; deleted with the commit of its batch. A
// Subscriber is an endpoint whose step waits for the answer. So a transaction is open while receivers work: at most
// AckDeadline for one message, and a batch begins no further message after 50 ms. A slow receiver holds one connection
// and one transaction, and holds back vacuum for as long; work of minutes belongs in a Handle, which holds neither.
//
// A nack, or no answer in time, puts the message back at its place, without a count of attempts, and it comes first
// again after some 50 ms. So a message that can never be handled blocks the queue of a Subscriber without a Policy.
// With a Policy the attempt counts, other messages overtake it, and the policy may make it a dead letter.
//
// # Failures
//
// A lost connection loses the batch: its acked messages are delivered again. The Subscriber keeps its channel and
// starts again until it is closed. Publish returns *bus.OutcomeUnknownError when the connection broke during the
// commit, and publishing again may then make a second message: a UUID is not remembered.
//
// An Intake acks committed messages. While the database is away it nacks, with a back-off; a message that this database
// cannot hold, or that makes a function of the options panic, becomes a dead letter with its bytes and is acked.
//
// # Log
//
// A Relay logs as bus does, and so does the endpoint of a Subscriber. docs/reference/log.md lists the texts.
package watermill
