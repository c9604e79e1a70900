package main

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// books is where a handler writes down what it did. What it has written counts if the message is handled.
type books interface {
	charge(ctx context.Context, order, cents int) error
	refund(ctx context.Context, order int) error
	reserve(ctx context.Context, order int, goods string) error
	release(ctx context.Context, order int) error
	ship(ctx context.Context, order int) error
	close(ctx context.Context, order int, outcome string) error
}

// keeper makes a handler with books: in its transaction on Postgres, or in memory.
type keeper interface{ inMemory() *ledger }

// handle makes a part of an endpoint from a handler that keeps books.
func handle[M saga.Message](k keeper, f func(*bus.Context, books, M) error) bus.Part {
	if l := k.inMemory(); l != nil {
		return bus.Handle(func(ctx *bus.Context, m M) error {
			var written pages
			if err := f(ctx, &written, m); err != nil {
				return err
			}
			l.add(written)
			return nil
		})
	}
	return bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m M) error { return f(ctx, tables{tx}, m) })
}

// tables are the shop's tables, in the transaction of a message: a row commits with the end of the message and with the
// answer.
type tables struct{ tx pgx.Tx }

func (t tables) charge(ctx context.Context, order, cents int) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO charge (order_id, cents) VALUES ($1, $2)`, order, cents)
	return err
}

func (t tables) refund(ctx context.Context, order int) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO refund (order_id) VALUES ($1)`, order)
	return err
}

func (t tables) reserve(ctx context.Context, order int, goods string) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO reservation (order_id, goods) VALUES ($1, $2)`, order, goods)
	return err
}

func (t tables) release(ctx context.Context, order int) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO release (order_id) VALUES ($1)`, order)
	return err
}

func (t tables) ship(ctx context.Context, order int) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO shipment (order_id) VALUES ($1)`, order)
	return err
}

func (t tables) close(ctx context.Context, order int, outcome string) error {
	_, err := t.tx.Exec(ctx, `INSERT INTO outcome (order_id, outcome) VALUES ($1, $2)`, order, outcome)
	return err
}
