package handlers

import (
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// Three handlers of OrderPaid, each with a table.

func reserve(ctx *bus.Context, tx pgx.Tx, m OrderPaid) error {
	_, err := tx.Exec(ctx, `INSERT INTO reservation (order_id, article) VALUES ($1, $2)`, m.Order, m.Article)
	return err
}

func count(ctx *bus.Context, tx pgx.Tx, m OrderPaid) error {
	_, err := tx.Exec(ctx, `UPDATE stock SET pieces = pieces - 1 WHERE article = $1`, m.Article)
	return err
}

func write(ctx *bus.Context, tx pgx.Tx, m OrderPaid) error {
	_, err := tx.Exec(ctx, `INSERT INTO letter (order_id) VALUES ($1)`, m.Order)
	return err
}
