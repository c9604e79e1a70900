// Package eddacqrs makes handlers of Watermill's CQRS component parts of an endpoint of Edda:
//
//	parts := eddacqrs.Handlers{Tx: true}.Commands(handlers...)
//	endpoint, err := bus.NewEndpoint(b, "bookings", bus.EndpointOptions{}, parts...)
//
// It is a separate package because the component links protobuf.
//
// # Promise
//
// A handler runs like a handler of watermill.Consume, or with Tx like a handler of watermill.ConsumeTx. Messages that
// it publishes with its context, by a command or event bus over a watermill.Publisher, are sent once, with the end of
// its message. All parts of the package are safe for concurrent use.
//
// # States
//
// The package keeps no state: a Handlers is its options, and a Marshaler remembers nothing.
//
// # Failures
//
// A message whose name is not the handler's, or that cannot be unmarshalled, becomes a dead letter at once. The
// endpoint's policy decides about the handler's own errors.
package eddacqrs
