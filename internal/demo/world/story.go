package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// The messages of the shop.
type (
	Place struct {
		Order    string
		Cents    int
		Customer string
	}
	Charge   struct{ Order, Card string }
	Charged  struct{ Order string }
	Reserve  struct{ Order string }
	Reserved struct{ Order string }
	Ship     struct{ Order string }
	Shipped  struct{ Order string }
	Mail     struct{ Order, Template string }
	Note     struct{ Order, Text string }
	Check    struct{ Order string }
	Cancel   struct{ Order string }
	Overdue  struct{}
	Print    struct{ Batch, Labels int }
	Label    struct{ N int }
	Export   struct{ Order string }
)

func (Place) Kind() string    { return "order.place" }
func (Charge) Kind() string   { return "payment.charge" }
func (Charged) Kind() string  { return "payment.charged" }
func (Reserve) Kind() string  { return "stock.reserve" }
func (Reserved) Kind() string { return "stock.reserved" }
func (Ship) Kind() string     { return "parcel.ship" }
func (Shipped) Kind() string  { return "parcel.shipped" }
func (Mail) Kind() string     { return "mail.send" }
func (Note) Kind() string     { return "order.note" }
func (Check) Kind() string    { return "order.check" }
func (Cancel) Kind() string   { return "order.cancel" }
func (Overdue) Kind() string  { return "order.overdue" }
func (Print) Kind() string    { return "labels.print" }
func (Label) Kind() string    { return "label.print" }
func (Export) Kind() string   { return "invoice.export" }

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
	saga.StartedBy(func(m Place) string { return m.Order }, (*Order).place),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ Charged) error {
		o.Paid = true
		ctx.CancelTimeout("payment")
		return o.ship(ctx)
	}),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ Reserved) error {
		o.Reserved = true
		return o.ship(ctx)
	}),
	saga.OnReply(func(o *Order, ctx *saga.Context, _ Shipped) error {
		ctx.Send(Mail{Order: ctx.Key(), Template: "shipped"})
		ctx.Send(Export{Order: ctx.Key()})
		ctx.Complete()
		return nil
	}),
	saga.OnTimeout(func(*Order, *saga.Context, Overdue) error { return nil }),
	saga.Handles(func(m Note) string { return m.Order }, func(o *Order, _ *saga.Context, m Note) error {
		o.Notes = append(o.Notes, m.Text)
		return nil
	}),
	saga.Handles(func(m Check) string { return m.Order }, func(o *Order, ctx *saga.Context, _ Check) error {
		if ctx.Info().Attempt <= 2 {
			return errStock
		}
		o.Checked = true
		return nil
	}),
	saga.Handles(func(m Cancel) string { return m.Order }, func(_ *Order, ctx *saga.Context, _ Cancel) error {
		ctx.Complete()
		return nil
	}),
)

func (o *Order) place(ctx *saga.Context, m Place) error {
	o.Cents, o.Customer = m.Cents, m.Customer
	ctx.Send(Charge{Order: m.Order, Card: "4111 …"})
	ctx.Send(Reserve{Order: m.Order})
	ctx.Timeout(24*time.Hour, Overdue{}, saga.Named("payment"))
	return nil
}

func (o *Order) ship(ctx *saga.Context) error {
	if o.Paid && o.Reserved {
		ctx.Send(Ship{Order: ctx.Key()})
		ctx.Send(Mail{Order: ctx.Key(), Template: "on its way"})
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
	all["payments"] = endpoint("payments", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m Charge) error {
		ctx.Reply(Charged{Order: m.Order})
		return nil
	}))
	all["stock"] = endpoint("stock", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m Reserve) error {
		ctx.Reply(Reserved(m))
		return nil
	}))
	all["shipping"] = endpoint("shipping", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m Ship) error {
		ctx.Reply(Shipped(m))
		return nil
	}))
	all["mails"] = endpoint("mails", bus.EndpointOptions{Policy: recoverability.Always(recoverability.DeadLetter())},
		bus.Handle(mail))
	all["labels"] = endpoint("labels", bus.EndpointOptions{
		Policy: recoverability.Always(recoverability.DeadLetter())}, bus.Handle(printLabels), bus.Handle(printLabel))
	all["erp"] = endpoint("erp", bus.EndpointOptions{
		Policy: recoverability.Always(recoverability.RetryIn(6 * time.Hour))},
		bus.Handle(func(*bus.Context, Export) error { return errPartner }))
	return all
}

func mail(_ *bus.Context, m Mail) error {
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

func printLabels(ctx *bus.Context, m Print) error {
	for n := range m.Labels {
		ctx.Send(Label{N: n})
	}
	return nil
}

func printLabel(_ *bus.Context, m Label) error {
	if m.N%20 == 7 {
		return fmt.Errorf("printer 3: label %d: out of paper", m.N)
	}
	return nil
}
