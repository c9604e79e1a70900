package orders

import (
	"context"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Place takes an order: its row and the message that starts its saga commit together, in the caller's own transaction.
// When the commit breaks, both are there or neither.
func (s *Service) Place(ctx context.Context, o PlaceOrder) (sent saga.Sent, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO placed (order_id, card, cents) VALUES ($1, $2, $3)`, o.OrderID, o.Card,
			o.Cents); err != nil {
			return err
		}
		sent, err = s.bus.SendTx(ctx, tx, o)
		return err
	})
	return sent, err
}
