package edda_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The parts that the example of a schedule leaves out: its messages and their handlers.

type (
	Settle    struct{ Currency string }
	ReadRates struct{}
)

func (Settle) Kind() string    { return "settlement.start" }
func (ReadRates) Kind() string { return "rates.read" }

// settle writes in the same transaction that ends the run.
func settle(ctx *bus.Context, tx pgx.Tx, m Settle) error {
	_, err := tx.Exec(ctx, "INSERT INTO orders (id, email) VALUES ($1, $2)", m.Currency+ctx.Info().Firing.Due.String(),
		"")
	return err
}

func readRates(*bus.Context, pgx.Tx, ReadRates) error { return nil }

func openMigratedShop() (context.Context, *pgxpool.Pool) {
	ctx, pool := openShop()
	check(migrations.Up(ctx, pool, migrations.Options{Schema: schema}))
	return ctx, pool
}

// tellFired records handled firings. A due time of the night may be among them.
func tellFired(e event.Event) {
	if e, ok := e.(event.Handled); ok && e.Info.Firing != nil && e.Info.Kind == (ReadRates{}).Kind() {
		handled <- fmt.Sprintf("manifest %s fired, attempt %d", e.Info.Firing.Manifest, e.Info.Firing.Attempt)
	}
}
