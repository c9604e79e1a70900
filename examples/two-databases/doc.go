// Command two-databases runs two services with a database each, which talk over NATS JetStream, and shows that nothing
// is lost or done twice between them. README.md has the way of an order, and the mechanism that protects each step.
//
//	go run .                 # twenty orders
//	go run . -orders 1000
//
// It is a module of its own, because it links the NATS server: run it in its directory.
//
// The exit code is 0 only if every order that was placed went its way once. The scenario shop of
// internal/test/chaos/border also kills worker processes, both servers and nodes of the broker, and checks more.
//
// contract has the messages that cross; orders and payments are the code of a user; broker sets up Watermill, and has a
// server; main.go with sell.go and narrate.go runs them.
package main
