package main

import "github.com/edda-go/edda/saga"

// Where an order is. The last two are outcomes too, as the shop's table has them.
const (
	paying  = "paying"
	packing = "packing"
	shipped = "shipped"
	refused = "refused"
)

// Order is the state of one order while it lives, stored as JSON.
type Order struct{ At string }

func (o *Order) place(ctx *saga.Context, m PlaceOrder) error {
	if !ctx.IsNew() {
		return saga.Discard("this order is there already")
	}
	o.At = paying
	ctx.Send(ChargeCard{Order: m.Order, Cents: m.Cents})
	return nil
}

func (o *Order) charged(ctx *saga.Context, m CardCharged) error {
	o.At = packing
	ctx.Send(PackOrder(m))
	return nil
}

func (o *Order) packed(ctx *saga.Context, m OrderPacked) error { return o.end(ctx, m.Order, shipped) }

func (o *Order) cardRefused(ctx *saga.Context, m CardRefused) error {
	return o.end(ctx, m.Order, refused)
}

// end has the outcome booked. The order completes when that is done, so a reader finds the saga or the outcome.
func (o *Order) end(ctx *saga.Context, order, outcome string) error {
	o.At = outcome
	ctx.Send(BookOutcome{Order: order, Outcome: outcome})
	return nil
}

func (o *Order) booked(ctx *saga.Context, _ OutcomeBooked) error {
	ctx.Complete()
	return nil
}

var orders = saga.Define("web.order", saga.Options{},
	saga.StartedBy(func(m PlaceOrder) string { return m.Order }, (*Order).place),
	saga.Handles(func(m CardCharged) string { return m.Order }, (*Order).charged),
	saga.Handles(func(m CardRefused) string { return m.Order }, (*Order).cardRefused),
	saga.Handles(func(m OrderPacked) string { return m.Order }, (*Order).packed),
	saga.Handles(func(m OutcomeBooked) string { return m.Order }, (*Order).booked))
