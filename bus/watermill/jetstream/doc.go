// Package jetstream is a Publisher and a Subscriber of Watermill over NATS JetStream that move batches and keep strict
// order, as a relay and an intake of Edda want them. It is a module of its own, so that other programs do not link
// NATS.
//
//	conn, err := jetstream.Connect("nats://n1:4222,nats://n2:4222,nats://n3:4222")
//	publisher, err := jetstream.NewPublisher(conn, jetstream.PublisherOptions{})
//	relay, err := watermill.NewRelay(b, "shop.events", publisher, watermill.RelayOptions{}, "order.paid")
//
// # Promise
//
// What Publish accepted is in the stream, all of a call or none of it, in the order of the call; on a stream without
// AllowAtomicPublish, the first messages of it up to the one that the error names. Publish with the same UUIDs again is
// no second message within the duplicate window of the stream. Nothing is kept for later while the server is away:
// Publish fails.
//
// A Subscriber gives out the messages of a consumer in the order of the stream, each at least once, with many of them
// in hand. Behind a message that was nacked, or was never answered, nothing is acked, and all of it comes again in
// order. So a receiver that commits what it is given in the order in which it comes, and knows ids that it has seen, as
// an Intake does, has every message once and in order, however many processes read, and whatever is killed.
//
// # States of a consumer
//
// Its place is the ack floor: everything up to there was acked. A reading begins with a reset of the consumer to that
// place, and ends with the first message that is not the very next one: a redelivery, a gap, or another pin. It ends
// too when a message is nacked, and when the server says nothing for two seconds. Then the next reading begins.
//
// Of several processes that subscribe, the server pins one, which reads; the others stand by, and one of them follows
// when it leaves, or the PinnedTTL of the consumer after it has died. Two that both believe to be the reader, for a
// moment, give out the same messages in the same order.
//
// # What the server needs
//
// nats-server 2.14 or later, for the reset of a consumer. The stream: AllowAtomicPublish, three replicas. All subjects
// of a topic that is cut into parts belong to one stream. The consumer: ConsumerConfig; Subscribe refuses one with
// which messages would be lost or overtaken. Both are made before, by your deployment. The connection: Connect.
//
// # Failures
//
// See Publish for its errors. A batch whose answer is lost is there or is not; published again, it is there once. A
// batch that has a message which is there already is refused as a whole, so it goes one by one then. A Router, whose
// handlers run beside each other, needs InHand 1 to keep order.
//
// # Log
//
// docs/reference/log.md lists the texts.
package jetstream
