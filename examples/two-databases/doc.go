// Command two-databases runs two services with a Postgres server each, which talk over NATS JetStream, and shows that
// nothing is lost or done twice between them. README.md has the way of an order, and what protects each step of it.
//
//	go run .                        # a first look, half a minute
//	go run . -chaos -seconds 60     # with worker processes, both servers and the nodes of the broker killed at random
//	go run . -h
//
// It is a module of its own, because it links the NATS server: run it in its directory.
//
// # What it proves
//
// The exit code is 0 only if every order that was placed was paid once or declined once, with the sum and by the card
// that it was placed with, told to the buyer once, and shipped once if it was paid; and if afterwards no saga lives, no
// message is dead, discarded, left in a queue of either database or held by the broker. The tables that are counted
// have no constraint: what happens twice is there twice.
//
// Reading order: contract (what crosses), orders and payments (what a user writes), then the program around them:
// lab.go, broker.go, look.go with narrate.go, chaos.go with worker.go (internal/procs starts and kills it), place.go,
// drain.go, check.go with check.sql, main.go.
package main
