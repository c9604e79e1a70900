// Package brokers configures the publishers and subscribers of watermill-nats, watermill-kafka and watermill-amqp for
// relays and intakes. docs/guide/brokers.md gives each setting with its reason; this package is those settings as code,
// and its tests hold both.
//
// # Promise
//
// A message that Publish accepted is in the broker, and stays there when a node dies: JetStream with three replicas has
// it on two, Kafka with acks=all on all replicas in sync, a quorum queue of RabbitMQ on most of its nodes. Messages of
// one key arrive in their order. A message that comes twice, because an answer was lost, comes twice with one id;
// dropping the second is the work of the inbox, and JetStream's own window is a saving and not a promise.
//
// # Ways
//
// A Route names a broker, a topic and one of the ways over it; its Way lays what has to be there, and connects a
// publisher and a subscriber. The scenarios and the tests of crossings go over it.
//
// # Order
//
// Each of them has one message in hand for each subscription, or for each partition. So a topic of some throughput is
// cut into parts by key: subjects orders.0 … orders.7 of one stream, partitions, or queues. One part keeps its order as
// long as one message of it is in hand, hence MaxPending 1 of the consumer, and a prefetch count of 1.
//
// # Failures
//
// A broker that is away is an error of Publish, soon, and the relay waits. Unfit knows the errors that no waiting
// helps.
//
// # Tests
//
// Those of RabbitMQ have the build tag rabbitmq, because not every machine that can build Edda can have one ("make
// rabbitmq"). Where there is none they fail, and say what to do: none of them skips.
package brokers
