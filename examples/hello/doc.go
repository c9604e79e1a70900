// Command hello is a first program: a saga that requests a charge from a service, and gives up after a minute without
// an answer.
//
//	go run github.com/edda-go/edda/examples/hello@latest
package main
