// Package jetstream is Watermill over NATS JetStream, in batches and in order.
package jetstream
