package shop

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The faults, by the number of the order.
const (
	refusedEvery    = 100
	unreadableEvery = 500
	awayEvery       = 250
	awayAttempts    = 9 // by patience this is longer than an order waits
)

func isRefused(order int) bool    { return order%refusedEvery == 7 }
func isUnreadable(order int) bool { return order%unreadableEvery == 11 }
func isAway(order int) bool       { return order%awayEvery == 13 }

var (
	errNoAnswer   = errors.New("the bank does not answer")
	errUnreadable = errors.New("the number of the card cannot be read")
)

// bank charges cards.
type bank struct{ payWithin time.Duration }

// charge writes exactly one row for a message that is handled, however often it was tried: a row commits with the end
// of the message and with the answer.
func (b *bank) charge(ctx *bus.Context, tx pgx.Tx, m ChargeCard) error {
	switch attempt := ctx.Info().Attempt; {
	case isUnreadable(m.Order):
		return saga.Permanent(errUnreadable)
	case isAway(m.Order) && attempt <= awayAttempts, oneInTen(m.Order, attempt):
		return errNoAnswer
	case isRefused(m.Order):
		ctx.Reply(CardRefused{Order: m.Order})
		return nil
	}
	ctx.Reply(CardCharged{Order: m.Order})
	_, err := tx.Exec(ctx, "INSERT INTO charge (order_id, cents) VALUES ($1, $2)", m.Order, m.Cents)
	return err
}

func (b *bank) refund(ctx *bus.Context, tx pgx.Tx, m RefundCard) error {
	_, err := tx.Exec(ctx, "INSERT INTO refund (order_id) VALUES ($1)", m.Order)
	return err
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

func reserve(ctx *bus.Context, tx pgx.Tx, m ReserveStock) error {
	ctx.Reply(StockReserved{Order: m.Order})
	_, err := tx.Exec(ctx, "INSERT INTO reservation (order_id, goods) VALUES ($1, $2)", m.Order, m.Goods)
	return err
}

func release(ctx *bus.Context, tx pgx.Tx, m ReleaseStock) error {
	_, err := tx.Exec(ctx, "INSERT INTO release (order_id) VALUES ($1)", m.Order)
	return err
}

func ship(ctx *bus.Context, tx pgx.Tx, m ShipOrder) error {
	ctx.Reply(OrderShipped(m))
	_, err := tx.Exec(ctx, "INSERT INTO shipment (order_id) VALUES ($1)", m.Order)
	return err
}

// book writes down how an order has ended.
func book(ctx *bus.Context, tx pgx.Tx, m OrderClosed) error {
	_, err := tx.Exec(ctx, "INSERT INTO outcome (order_id, outcome) VALUES ($1, $2)", m.Order, m.Outcome)
	return err
}
