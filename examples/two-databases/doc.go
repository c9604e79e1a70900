// Command two-databases runs two services with a Postgres server each, which talk over NATS JetStream, and shows that
// nothing is lost or done twice between them. README.md has the way of an order, and what protects each step of it.
//
//	go run .      half a minute
//	go run . -h
//
// It is a module of its own, because it links the NATS server: run it in its directory.
//
// The exit code is 0 only if every order that was placed went its way once, and nothing is left anywhere; package shop
// has the check. The scenario shop of internal/chaos/border kills worker processes, both servers and the broker's nodes
// meanwhile.
//
// contract has what crosses; orders and payments are what a user writes; shop has the servers, the broker and the
// check; look.go with narrate.go shows the way of the first orders.
package main
