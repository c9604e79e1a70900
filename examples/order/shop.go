package main

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// What goes wrong, by the number of the order.
const (
	refusedEvery    = 100
	unreadableEvery = 500
	awayEvery       = 250
	awayAttempts    = 9 // with retryEvery this is longer than payWithin
)

func isRefused(order int) bool    { return order%refusedEvery == 7 }
func isUnreadable(order int) bool { return order%unreadableEvery == 11 }
func isAway(order int) bool       { return order%awayEvery == 13 }

var (
	errNoAnswer   = errors.New("the bank does not answer")
	errUnreadable = errors.New("the number of the card cannot be read")
)

// bank charges cards. It is a value of the fx graph, as the clients of other systems would be.
type bank struct{ payWithin time.Duration }

// endpoint is where charges are handled.
func (b *bank) endpoint(k keeper) eddafx.Spec {
	return eddafx.Spec{Name: "payment", Options: bus.EndpointOptions{Policy: b.patience},
		Parts: []bus.Part{handle(k, b.charge), handle(k, b.refund)}}
}

// charge writes exactly one row for a message that is handled, however often it was tried.
func (b *bank) charge(ctx *bus.Context, to books, m ChargeCard) error {
	switch attempt := ctx.Info().Attempt; {
	case isUnreadable(m.Order):
		return saga.Permanent(errUnreadable)
	case isAway(m.Order) && attempt <= awayAttempts, oneInTen(m.Order, attempt):
		return errNoAnswer
	case isRefused(m.Order):
		ctx.Reply(CardRefused{Order: m.Order})
		return nil
	}
	if err := to.write(ctx, entry{aCharge, m.Order, m.Cents}); err != nil {
		return err
	}
	ctx.Reply(CardCharged{Order: m.Order})
	return nil
}

func (b *bank) refund(ctx *bus.Context, to books, m RefundCard) error {
	return to.write(ctx, entry{aRefund, m.Order, nil})
}

// patience is the policy of the payment endpoint: twice at once, then at distances that make awayAttempts of them
// longer than the customer waits.
func (b *bank) patience(f recoverability.Failure) recoverability.Decision {
	switch attempt := f.Info.Attempt; {
	case errors.Is(f.Err, errUnreadable), attempt > 2*awayAttempts:
		return recoverability.DeadLetter()
	case attempt <= 2:
		return recoverability.RetryNow()
	}
	return recoverability.RetryIn(b.payWithin / (awayAttempts - 3))
}

// oneInTen is chance that is the same in every run.
func oneInTen(order, attempt int) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strconv.Itoa(order) + "/" + strconv.Itoa(attempt)))
	return h.Sum32()%10 == 0
}

func reserve(ctx *bus.Context, b books, m ReserveStock) error {
	if err := b.write(ctx, entry{aReservation, m.Order, m.Goods}); err != nil {
		return err
	}
	ctx.Reply(StockReserved{Order: m.Order})
	return nil
}

func release(ctx *bus.Context, b books, m ReleaseStock) error {
	return b.write(ctx, entry{aRelease, m.Order, nil})
}

func ship(ctx *bus.Context, b books, m ShipOrder) error {
	if err := b.write(ctx, entry{aShipment, m.Order, nil}); err != nil {
		return err
	}
	ctx.Reply(OrderShipped(m))
	return nil
}

// book writes down how an order has ended.
func book(ctx *bus.Context, b books, m OrderClosed) error {
	return b.write(ctx, entry{anOutcome, m.Order, m.Outcome})
}
