package shop

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// Tables makes the shop's own tables, unless they are there.
//
//go:embed tables.sql
var Tables string

// Endpoints are the services of the shop. An order waits so long for its money.
func Endpoints(b *bus.Bus, payWithin time.Duration) ([]edda.Runner, error) {
	bank := &bank{payWithin: payWithin}
	orders, err1 := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders(payWithin)))
	payment, err2 := bus.NewEndpoint(b, "payment", bus.EndpointOptions{Policy: bank.patience},
		bus.HandleTx(bank.charge), bus.HandleTx(bank.refund))
	shipping, err3 := bus.NewEndpoint(b, "shipping", bus.EndpointOptions{},
		bus.HandleTx(reserve), bus.HandleTx(release), bus.HandleTx(ship))
	accounts, err4 := bus.NewEndpoint(b, "accounts", bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(book))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return []edda.Runner{orders, payment, shipping, accounts}, nil
}

const cents = 1999 // the price of a hat

// Place places the orders from first to the one before last in the shop's own transaction. The row of an order and the
// event that starts its saga commit together.
func Place(ctx context.Context, b *bus.Bus, first, last int) error {
	return b.InTx(ctx, func(tx pgx.Tx) error {
		for order := first; order < last; order++ {
			_, err1 := tx.Exec(ctx, "INSERT INTO placed (order_id, cents) VALUES ($1, $2)", order, cents)
			_, err2 := b.PublishTx(ctx, tx, OrderPlaced{Order: order, Cents: cents, Goods: "a hat"})
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
		}
		return nil
	})
}
