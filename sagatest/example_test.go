package sagatest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
)

// A test of a saga needs no database, and moves the clock itself.
func ExampleNew() {
	run := sagatest.New(t, Tickets) // t is the *testing.T of the test
	check(run.Deliver(OpenTicket{Ticket: "7"}))
	fmt.Println("sent:", run.Sent())

	check(run.Advance(24 * time.Hour)) // fires the timeouts that are due
	fmt.Println("asked:", sagatest.State[Ticket](run, "7").Asked)

	check(run.Reply(AskCustomer{Question: "Is it solved?"}, Answered{Text: "yes"}))
	fmt.Println("live:", run.Live("7"))
	// Output:
	// sent: [{Is it solved?}]
	// asked: 2
	// live: false
}

// A test is written as text: the deliveries, and their results. go test -rewrite writes the results.
func ExampleTranscript() {
	test := func(t *testing.T) { sagatest.Transcript(t, Tickets, "testdata/example/*.txt") }
	fmt.Println("passes:", passes(test))
	text, err := os.ReadFile("testdata/example/ticket.txt")
	check(err)
	fmt.Print(string(text))
	// Output:
	// passes: true
	// # The customer is asked at once, and again after a day.
	// deliver ticket.open {"Ticket":"7"}
	// ----
	// ticket/7: new, version 1
	//   state {"Asked":1}
	//   send customer.ask {"Question":"Is it solved?"}
	//   after 24h0m0s: ticket.stale "stale"
	// ack
	//
	// advance 24h
	// ----
	// after 24h0m0s: timeout ticket.stale
	// ticket/7: version 2
	//   state {"Asked":2}
	//   send customer.ask {"Question":"Is it solved?"}
	//   after 24h0m0s: ticket.stale "stale"
	// ack
	//
	// # The answer ends the ticket, and its timeout.
	// reply customer.ask customer.answered {"Text":"yes"}
	// ----
	// ticket/7: complete
	//   cancels ticket.stale "stale" due in 24h0m0s
	// ack
}

// A store in memory with the rules of the database, for tests of programs that save instances.
func ExampleNewStore() {
	store := sagatest.NewStore()
	_, ok, err := store.Load(sagatest.Ref{Saga: "ticket", Key: "7"})
	check(err)
	fmt.Println("there:", ok)
	// Output: there: false
}
