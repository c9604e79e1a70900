package payments

import (
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/jackc/pgx/v5"
)

// ship listens to an event that is published in the other database.
func ship(ctx *bus.Context, tx pgx.Tx, m contract.OrderPaid) error {
	_, err := tx.Exec(ctx, `INSERT INTO shipment (order_id) VALUES ($1)`, m.OrderID)
	return err
}
