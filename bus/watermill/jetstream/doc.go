// Package jetstream has a Publisher and a Subscriber of Watermill over NATS JetStream that move batches and keep strict
// order, for relays and intakes of Edda. It is a separate module, so that other programs do not link NATS.
//
//	conn, err := jetstream.Connect("nats://n1:4222,nats://n2:4222,nats://n3:4222")
//	publisher, err := jetstream.NewPublisher(conn, jetstream.PublisherOptions{})
//	relay, err := watermill.NewRelay(b, "shop.events", publisher, watermill.RelayOptions{}, "order.paid")
//
// # Promise
//
// Messages that Publish accepted are in the stream, all messages of a call or none, in the order of the call; on a
// stream without AllowAtomicPublish, the first messages of the call up to the message that the error names. A second
// Publish with the same UUIDs stores no second message within the duplicate window of the stream. No message is
// buffered while the server is away: Publish fails.
//
// A Subscriber delivers the messages of a consumer in the order of the stream, each at least once, with many of them in
// hand. Behind a message that was nacked, or was never answered, no message is acked, and all of them come again in
// order. So a receiver that commits messages in their order, and recognizes repeated ids, as an Intake does, has every
// message once and in order, whatever number of processes read, and whichever of them is killed.
//
// # States of a consumer
//
// Its place is the ack floor: all messages up to there were acked. A reading begins with a reset of the consumer to
// that place, and ends with the first message that is not the very next: a redelivery, a gap, or a different pin. It
// also ends when a message is nacked, or when the server is silent for two seconds. Then the next reading begins.
//
// Of several processes that subscribe, the server pins one, which reads; the others stand by. One of them follows when
// the reader leaves, or the PinnedTTL of the consumer after the reader has died. If two processes are readers for a
// moment, they deliver the same messages in the same order.
//
// # Requirements of the server
//
// nats-server 2.14 or later, for the reset of a consumer. The stream: AllowAtomicPublish, three replicas. All subjects
// of a topic with parts belong to one stream. The consumer: ConsumerConfig; Subscribe refuses a consumer that would
// lose or reorder messages. Your deployment makes both. The connection: Connect.
//
// # Failures
//
// See Publish for its errors. If the answer to a batch is lost, the batch may be stored or not; published again, it is
// stored once. A batch with a message that is stored already is refused as a whole, so its messages are published one
// by one. A Router, whose handlers run in parallel, needs InHand 1 to keep order.
//
// # Log
//
// docs/reference/log.md lists the texts.
package jetstream
