// Command two-databases runs two services with a database each, which talk over NATS JetStream, and shows that nothing
// is lost or done twice between them. README.md has the way of an order, and what protects each step of it.
//
//	go run .                 # twenty orders
//	go run . -orders 1000
//
// It is a module of its own, because it links the NATS server: run it in its directory.
//
// The exit code is 0 only if every order that was placed went its way once. The scenario shop of
// internal/test/chaos/border kills worker processes, both servers and nodes of the broker meanwhile, and looks closer.
//
// contract has what crosses; orders and payments are what a user writes; broker has how Watermill is set up, and a
// server; main.go with sell.go and narrate.go runs them.
package main
