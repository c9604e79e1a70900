// Command hello is a first program: a saga that asks a service for money, gets the answer, or gives up after a minute.
//
//	go run github.com/edda-go/edda/examples/hello@latest
package main
