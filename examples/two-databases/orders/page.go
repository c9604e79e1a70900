package orders

import (
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/jackc/pgx/v5"
)

// The page of an order shows how it ended. Handlers of this service's own events write its rows; the table has no
// constraint, so that an event which came twice is a second row.

func paid(ctx *bus.Context, tx pgx.Tx, m contract.OrderPaid) error {
	return write(ctx, tx, m.OrderID, "paid")
}

func declined(ctx *bus.Context, tx pgx.Tx, m OrderDeclined) error {
	return write(ctx, tx, m.OrderID, "declined")
}

func delayed(ctx *bus.Context, tx pgx.Tx, m OrderDelayed) error {
	return write(ctx, tx, m.OrderID, "delayed")
}

func write(ctx *bus.Context, tx pgx.Tx, order, news string) error {
	_, err := tx.Exec(ctx, `INSERT INTO page (order_id, news) VALUES ($1, $2)`, order, news)
	return err
}
