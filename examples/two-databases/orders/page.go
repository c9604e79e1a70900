package orders

import (
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/jackc/pgx/v5"
)

// The page of an order says how it ended. Its rows are written by handlers of this service's own events; the table has
// no constraint, so that an event which came twice would be seen.

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
