package saga_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
)

type OpenTicket struct{ Ticket string }
type CloseTicket struct{ Ticket string }
type TicketStale struct{}
type TicketClosed struct{ After time.Duration }

func (OpenTicket) Kind() string   { return "ticket.open" }
func (CloseTicket) Kind() string  { return "ticket.close" }
func (TicketStale) Kind() string  { return "ticket.stale" }
func (TicketClosed) Kind() string { return "ticket.closed" }

// Ticket is the state: exported fields, stored as JSON.
type Ticket struct{ Opened time.Time }

func (t *Ticket) Open(ctx *saga.Context, m OpenTicket) error {
	t.Opened = ctx.Now()
	ctx.Timeout(72*time.Hour, TicketStale{}, saga.Named("stale"))
	return nil
}

func (t *Ticket) Close(ctx *saga.Context, m CloseTicket) error {
	ctx.Publish(TicketClosed{After: ctx.Now().Sub(t.Opened)})
	ctx.Complete()
	return nil
}

func (t *Ticket) Stale(ctx *saga.Context, _ TicketStale) error {
	return t.Close(ctx, CloseTicket{Ticket: ctx.Key()})
}

// A definition is data. Err returns all its faults at once.
func ExampleDefine() {
	tickets := saga.Define("ticket", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m OpenTicket) string { return m.Ticket }, (*Ticket).Open),
		saga.Handles(func(m CloseTicket) string { return m.Ticket }, (*Ticket).Close,
			saga.IfMissing(saga.MissingDeadLetter)),
		saga.OnTimeout((*Ticket).Stale),
	)
	fmt.Println(tickets.Err())
	for _, k := range tickets.Kinds() {
		fmt.Println(k.Role, k.Kind)
	}
	// Output:
	// <nil>
	// StartedBy ticket.open
	// Handles ticket.close
	// OnTimeout ticket.stale
	// OnTimeout edda.forget
}

type Careless struct {
	Seen  map[string]any
	cache []string
}

func (c Careless) Open(*saga.Context, OpenTicket) error { c.cache = nil; return nil }

func ExampleDefinition_Err() {
	d := saga.Define("careless", saga.Options{StateVersion: 2},
		saga.StartedBy(func(m OpenTicket) string { return m.Ticket }, (*Careless).Open))
	for _, fault := range strings.Split(d.Err().Error(), "\n") {
		fmt.Println(fault)
	}
	// Output:
	// saga "careless": StartedBy of ticket.open: its value receiver loses changes to the state; declare it on *Careless
	// saga "careless": no Upcast from version 1, and StateVersion is 2
	// saga "careless": state saga_test.Careless: field Seen is an interface, so its type is lost when it is stored
	// saga "careless": state saga_test.Careless: field cache is unexported, so it is not stored: export it
}

// A runtime prepares a message, opens its instance, and steps. Nothing happens until it writes the outcome.
func ExampleSession_Step() {
	tickets := saga.Define("ticket", saga.Options{},
		saga.StartedBy(func(m OpenTicket) string { return m.Ticket }, (*Ticket).Open),
		saga.OnTimeout((*Ticket).Stale))
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := saga.Delivery{Info: saga.Info{ID: saga.ID{15: 1}, Kind: "ticket.open"}, Body: []byte(`{"Ticket":"7"}`)}

	call, err := tickets.Prepare(in, saga.JSON)
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := tickets.Open(saga.Instance{New: true, ID: saga.ID{15: 2}, Key: call.Key()})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := session.Step(context.Background(), &saga.Runtime{
		In: in, Now: noon, Clock: func() time.Time { return noon }, NewID: func() saga.ID { return saga.ID{15: 3} },
		Endpoint: "desk",
	}, call)
	i, _ := session.Instance()
	fmt.Println(out.Err, i.Saga, i.Key, string(i.State))
	for _, o := range out.Out {
		fmt.Println(o.Info.Intent, o.Info.Kind, o.Info.Due.Sub(noon))
	}
	// Output:
	// <nil> ticket 7 {"Opened":"2026-03-01T12:00:00Z"}
	// timeout ticket.stale 72h0m0s
}
