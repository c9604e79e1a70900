package sagatest_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

// The examples share a saga, and the testing.T of a test.

type (
	OpenTicket  struct{ Ticket string }
	AskCustomer struct{ Question string }
	Answered    struct{ Text string }
	TicketStale struct{}
)

func (OpenTicket) Kind() string  { return "ticket.open" }
func (AskCustomer) Kind() string { return "customer.ask" }
func (Answered) Kind() string    { return "customer.answered" }
func (TicketStale) Kind() string { return "ticket.stale" }

type Ticket struct{ Asked int }

func (t *Ticket) Open(ctx *saga.Context, _ OpenTicket) error { return t.Stale(ctx, TicketStale{}) }

// Stale sends the question, again each day.
func (t *Ticket) Stale(ctx *saga.Context, _ TicketStale) error {
	t.Asked++
	ctx.Send(AskCustomer{Question: "Is it solved?"})
	ctx.Timeout(24*time.Hour, TicketStale{}, saga.Named("stale"))
	return nil
}

func (t *Ticket) Answered(ctx *saga.Context, _ Answered) error {
	ctx.Complete()
	return nil
}

var Tickets = saga.Define("ticket", saga.Options{},
	saga.StartedBy(func(m OpenTicket) string { return m.Ticket }, (*Ticket).Open),
	saga.OnReply((*Ticket).Answered), saga.OnTimeout((*Ticket).Stale))

func check(err error) {
	if err != nil {
		panic(err)
	}
}

var t exampleT

type exampleT struct{ testing.TB }

func (exampleT) Helper()                   {}
func (exampleT) Context() context.Context  { return context.Background() }
func (exampleT) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (exampleT) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// passes runs a test, whose own output is not part of the example's.
func passes(test func(*testing.T)) bool {
	out := os.Stdout
	os.Stdout = os.Stderr
	defer func() { os.Stdout = out }()
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestTickets", F: test}})
}
