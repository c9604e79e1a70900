package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// Note is a message for an order, with any text.
type Note struct{ Order, Text string }

// Kind is that of a note.
func (Note) Kind() string { return "order.note" }

// The other messages of the shop.
type (
	place struct {
		Order    string
		Cents    int
		Customer string
	}
	charge     struct{ Order, Card string }
	charged    struct{ Order string }
	reserve    struct{ Order string }
	reserved   struct{ Order string }
	ship       struct{ Order string }
	shipped    struct{ Order string }
	mailed     struct{ Order, Template string }
	check      struct{ Order string }
	cancel     struct{ Order string }
	overdue    struct{}
	printBatch struct{ Batch, Labels int }
	label      struct{ N int }
	export     struct{ Order string }
)

func (place) Kind() string      { return "order.place" }
func (charge) Kind() string     { return "payment.charge" }
func (charged) Kind() string    { return "payment.charged" }
func (reserve) Kind() string    { return "stock.reserve" }
func (reserved) Kind() string   { return "stock.reserved" }
func (ship) Kind() string       { return "parcel.ship" }
func (shipped) Kind() string    { return "parcel.shipped" }
func (mailed) Kind() string     { return "mail.send" }
func (check) Kind() string      { return "order.check" }
func (cancel) Kind() string     { return "order.cancel" }
func (overdue) Kind() string    { return "order.overdue" }
func (printBatch) Kind() string { return "labels.print" }
func (label) Kind() string      { return "label.print" }
func (export) Kind() string     { return "invoice.export" }

// Order is the state of an order.
type Order struct {
	Cents    int
	Customer string `edda:"secret"`
	Paid     bool
	Reserved bool
	Checked  bool
	Notes    []string
}

var (
	errStock   = errors.New("the stock service answered 503 Service Unavailable")
	errPartner = errors.New("dial tcp: lookup erp.partner.example: no such host")
)

// Orders is the saga of the shop.
var Orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m place) string { return m.Order }, (*Order).place),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ charged) error {
		o.Paid = true
		ctx.CancelTimeout("payment")
		return o.ship(ctx)
	}),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ reserved) error {
		o.Reserved = true
		return o.ship(ctx)
	}),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ shipped) error {
		ctx.Send(mailed{Order: ctx.Key(), Template: "shipped"})
		ctx.Send(export{Order: ctx.Key()})
		ctx.Complete()
		return nil
	}),
	saga.OnTimeout(func(*Order, *saga.Context, overdue) error { return nil }),
	saga.Handles(func(m Note) string { return m.Order }, func(o *Order, _ *saga.Context, m Note) error {
		o.Notes = append(o.Notes, m.Text)
		return nil
	}),
	saga.Handles(func(m check) string { return m.Order }, func(o *Order, ctx *saga.Context, _ check) error {
		if ctx.Info().Attempt <= 2 {
			return errStock
		}
		o.Checked = true
		return nil
	}),
	saga.Handles(func(m cancel) string { return m.Order }, func(_ *Order, ctx *saga.Context, _ cancel) error {
		ctx.Complete()
		return nil
	}),
)

func (o *Order) place(ctx *saga.Context, m place) error {
	o.Cents, o.Customer = m.Cents, m.Customer
	ctx.Send(charge{Order: m.Order, Card: "4111 …"})
	ctx.Send(reserve{Order: m.Order})
	ctx.Timeout(24*time.Hour, overdue{}, saga.Named("payment"))
	return nil
}

func (o *Order) ship(ctx *saga.Context) error {
	if o.Paid && o.Reserved {
		ctx.Send(ship{Order: ctx.Key()})
		ctx.Send(mailed{Order: ctx.Key(), Template: "on its way"})
	}
	return nil
}

// cast are the endpoints of the shop, by their names.
func cast() map[string]func(b *bus.Bus) (*bus.Endpoint, error) {
	endpoint := func(name string, o bus.EndpointOptions, parts ...bus.Part) func(*bus.Bus) (*bus.Endpoint, error) {
		return func(b *bus.Bus) (*bus.Endpoint, error) {
			o.Concurrency = 1
			return bus.NewEndpoint(b, name, o, parts...)
		}
	}
	all := map[string]func(*bus.Bus) (*bus.Endpoint, error){}
	all["orders"] = endpoint("orders", bus.EndpointOptions{
		Policy: recoverability.Always(recoverability.RetryIn(time.Millisecond))}, bus.Saga(Orders))
	all["payments"] = endpoint("payments", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m charge) error {
		ctx.Reply(charged{Order: m.Order})
		return nil
	}))
	all["stock"] = endpoint("stock", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m reserve) error {
		ctx.Reply(reserved(m))
		return nil
	}))
	all["shipping"] = endpoint("shipping", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m ship) error {
		ctx.Reply(shipped(m))
		return nil
	}))
	all["mails"] = endpoint("mails", bus.EndpointOptions{Policy: recoverability.Always(recoverability.DeadLetter())},
		bus.Handle(mail))
	all["labels"] = endpoint("labels", bus.EndpointOptions{
		Policy: recoverability.Always(recoverability.DeadLetter())}, bus.Handle(printLabels), bus.Handle(printLabel))
	all["erp"] = endpoint("erp", bus.EndpointOptions{
		Policy: recoverability.Always(recoverability.RetryIn(6 * time.Hour))},
		bus.Handle(func(*bus.Context, export) error { return errPartner }))
	return all
}

func mail(_ *bus.Context, m mailed) error {
	var n int
	_, _ = fmt.Sscanf(m.Order, "2026-%d", &n)
	switch {
	case m.Template == "shipped" && n%2 == 0:
		return fmt.Errorf("550 5.2.2 <customer-%d@example.org>: the mailbox is full", n)
	case n == 5:
		return errors.New("template \"on its way\": line 12: field Carrier is not set")
	}
	return nil
}

// labels is how many labels a batch has: enough to be folded.
const labels = 60

func printLabels(ctx *bus.Context, m printBatch) error {
	for n := range m.Labels {
		ctx.Send(label{N: n})
	}
	return nil
}

func printLabel(_ *bus.Context, m label) error {
	if m.N%20 == 7 {
		return fmt.Errorf("printer 3: label %d: out of paper", m.N)
	}
	return nil
}
