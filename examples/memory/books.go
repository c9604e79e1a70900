package main

import (
	"context"
	"sync"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// books stores the entries that the handler of a booking writes.
type books interface {
	write(ctx context.Context, order string, cents int) error
}

func book(ctx *bus.Context, to books, m Book) error {
	if err := to.write(ctx, m.Order, m.Cents); err != nil {
		return err
	}
	ctx.Reply(Booked{})
	return nil
}

// table is a table of yours, in the transaction of a message: the row commits with the end of the message.
type table struct{ tx pgx.Tx }

func (t table) write(ctx context.Context, order string, cents int) error {
	_, err := t.tx.Exec(ctx, "INSERT INTO booking (order_id, cents) VALUES ($1, $2)", order, cents)
	return err
}

// ledger is the same without a database. Handlers write at the same time.
type ledger struct {
	mu    sync.Mutex
	cents map[string]int // guarded by mu
}

func (l *ledger) write(_ context.Context, order string, cents int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cents[order] = cents
	return nil
}

// The handlers of both.

func bookInTable(ctx *bus.Context, tx pgx.Tx, m Book) error { return book(ctx, table{tx}, m) }

func (l *ledger) book(ctx *bus.Context, m Book) error { return book(ctx, l, m) }
