package main

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// entry is what a handler writes down of an order.
type entry struct {
	what   string // one of the entries below
	order  int
	detail any // the money, the goods or the outcome; nil is none
}

// books take what handlers write. It counts if the message is handled.
type books interface {
	write(ctx context.Context, e entry) error
}

// keeper makes a handler with books: in its transaction on Postgres, or in memory.
type keeper interface{ inMemory() *ledger }

// handle makes a part of an endpoint from a handler that keeps books.
func handle[M saga.Message](k keeper, f func(*bus.Context, books, M) error) bus.Part {
	if l := k.inMemory(); l != nil {
		return bus.Handle(func(ctx *bus.Context, m M) error {
			var written leaves
			if err := f(ctx, &written, m); err != nil {
				return err
			}
			l.add(written)
			return nil
		})
	}
	return bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m M) error { return f(ctx, tables{tx}, m) })
}

// The entries, as statements for the tables. Those with a detail have a second column.
const (
	aPlaced      = "INSERT INTO placed (order_id, cents) VALUES ($1, $2)"
	aCharge      = "INSERT INTO charge (order_id, cents) VALUES ($1, $2)"
	aRefund      = "INSERT INTO refund (order_id) VALUES ($1)"
	aReservation = "INSERT INTO reservation (order_id, goods) VALUES ($1, $2)"
	aRelease     = "INSERT INTO release (order_id) VALUES ($1)"
	aShipment    = "INSERT INTO shipment (order_id) VALUES ($1)"
	anOutcome    = "INSERT INTO outcome (order_id, outcome) VALUES ($1, $2)"
)

// tables are the shop's tables, in the transaction of a message: a row commits with the end of the message and with the
// answer.
type tables struct{ tx pgx.Tx }

func (t tables) write(ctx context.Context, e entry) error {
	values := []any{e.order}
	if e.detail != nil {
		values = append(values, e.detail)
	}
	_, err := t.tx.Exec(ctx, e.what, values...)
	return err
}
