package main

import (
	"errors"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The statements for the example's own table. Each effect is a row of the transaction that ends the message, and names
// its due time.

const (
	effect = "INSERT INTO effect (manifest, due) VALUES ($1, $2)"

	reported = `INSERT INTO effect (manifest, due)
		SELECT $1, s.due FROM effect s WHERE s.manifest = $2 AND s.due <= $3
		AND NOT EXISTS (SELECT FROM effect r WHERE r.manifest = $1 AND r.due = s.due)`
)

func enter(ctx *bus.Context, tx pgx.Tx, m Enter) error {
	ctx.Reply(Entered{})
	_, err := tx.Exec(ctx, effect, m.Manifest, m.Due)
	return err
}

// report reports each settlement up to the one that it follows, usually one. When a settlement succeeds before the
// report on the previous one has been queued, one run of the report covers both.
func report(ctx *bus.Context, tx pgx.Tx, m Report) error {
	fire := ctx.Info().Firing
	_, err := tx.Exec(ctx, reported, fire.Manifest, settleName(m.Currency), fire.Due)
	return err
}

func poll(ctx *bus.Context, tx pgx.Tx, _ Poll) error {
	fire := ctx.Info().Firing
	_, err := tx.Exec(ctx, effect, fire.Manifest, fire.Due)
	return err
}

var errFormat = errors.New("the file of rates has an unknown column")

// rates fails for good: to try again would not help, so its run is dead at once.
func rates(ctx *bus.Context, tx pgx.Tx, _ ReadRates) error {
	fire := ctx.Info().Firing
	if _, err := tx.Exec(ctx, effect, fire.Manifest, fire.Due); err != nil { // is undone with the rest
		return err
	}
	return saga.Permanent(errFormat)
}
