// Package broker is NATS JetStream: how Watermill's publisher and subscriber are set up for it, and a server for this
// example.
package broker
