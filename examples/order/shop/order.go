package shop

import (
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// How an order ends.
const (
	Shipped    = "shipped"
	CardDenied = "cancelled: card refused"
	NeverPaid  = "cancelled: not paid"
)

// Order is the state of one order while it lives, stored as JSON.
type Order struct {
	Cents    int
	Paid     bool
	Reserved bool
}

// rules holds the settings of the saga. Handlers may be methods of any type.
type rules struct{ payWithin time.Duration }

func (r rules) placed(o *Order, ctx *saga.Context, m OrderPlaced) error {
	o.Cents = m.Cents
	ctx.Send(ChargeCard{Order: m.Order, Cents: m.Cents})
	ctx.Send(ReserveStock{Order: m.Order, Goods: m.Goods})
	ctx.Timeout(r.payWithin, PaymentOverdue{}, saga.Named("payment"))
	return nil
}

func (o *Order) charged(ctx *saga.Context, m CardCharged) error {
	o.Paid = true
	ctx.CancelTimeout("payment")
	o.shipWhenReady(ctx, m.Order)
	return nil
}

func (o *Order) reserved(ctx *saga.Context, m StockReserved) error {
	o.Reserved = true
	o.shipWhenReady(ctx, m.Order)
	return nil
}

// shipWhenReady is called by both answers; whichever comes second ships.
func (o *Order) shipWhenReady(ctx *saga.Context, order int) {
	if o.Paid && o.Reserved {
		ctx.Send(ShipOrder{Order: order})
	}
}

func (o *Order) shipped(ctx *saga.Context, m OrderShipped) error {
	ctx.Publish(OrderClosed{Order: m.Order, Outcome: Shipped})
	ctx.Complete()
	return nil
}

func (o *Order) refused(ctx *saga.Context, m CardRefused) error {
	return o.cancel(ctx, m.Order, CardDenied)
}

func (o *Order) overdue(ctx *saga.Context, _ PaymentOverdue) error {
	order, err := strconv.Atoi(ctx.Key())
	if err != nil {
		return saga.Permanent(err)
	}
	return o.cancel(ctx, order, NeverPaid)
}

// cancel undoes the effects so far. refundLate and releaseLate undo effects that are reported later.
func (o *Order) cancel(ctx *saga.Context, order int, why string) error {
	if o.Reserved {
		ctx.Send(ReleaseStock{Order: order})
	}
	ctx.Publish(OrderClosed{Order: order, Outcome: why})
	ctx.Complete()
	return nil
}

// An answer that finds no order comes after the order was cancelled.

func refundLate(ctx *saga.Context, m CardCharged) error {
	ctx.Send(RefundCard(m))
	return nil
}

func releaseLate(ctx *saga.Context, m StockReserved) error {
	ctx.Send(ReleaseStock(m))
	return nil
}

// Orders is the saga of an order, which waits so long for its money.
func Orders(payWithin time.Duration) *saga.Definition {
	return saga.Define("order", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m OrderPlaced) string { return strconv.Itoa(m.Order) }, rules{payWithin}.placed),
		saga.Handles(func(m CardCharged) string { return strconv.Itoa(m.Order) }, (*Order).charged,
			saga.IfMissingDo(refundLate)),
		saga.Handles(func(m StockReserved) string { return strconv.Itoa(m.Order) }, (*Order).reserved,
			saga.IfMissingDo(releaseLate)),
		saga.OnReply((*Order).refused),
		saga.OnReply((*Order).shipped),
		saga.OnTimeout((*Order).overdue),
	)
}
