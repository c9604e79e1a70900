// Command watermill runs Watermill's Router and CQRS component on Edda's queues, and counts.
//
//	go run github.com/edda-go/edda/examples/watermill@latest
//
// Topics are kinds; each event handler has a consumer group, hence a copy of each event. The exit code is 1 if a count
// is wrong.
package main
