package main

import (
	"errors"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// office handles what is written into tables of our own. Each effect is a row of the transaction that ends the message,
// and names the due time that it is for.
type office struct{ sql pg.Statements }

func (o office) enter(ctx *bus.Context, tx pgx.Tx, m Enter) error {
	_, err := tx.Exec(ctx, o.sql.Get("effect"), m.Manifest, m.Due)
	ctx.Reply(Entered{})
	return err
}

// report answers for each settlement up to the one that it follows. It is often one; when a settlement succeeds before
// the report on the last one has been queued, one run of the report answers for both.
func (o office) report(ctx *bus.Context, tx pgx.Tx, m Report) error {
	fire := ctx.Info().Fire
	_, err := tx.Exec(ctx, o.sql.Get("report"), fire.Manifest, settleName(m.Currency), fire.Due)
	return err
}

func (o office) poll(ctx *bus.Context, tx pgx.Tx, _ Poll) error {
	fire := ctx.Info().Fire
	_, err := tx.Exec(ctx, o.sql.Get("effect"), fire.Manifest, fire.Due)
	return err
}

var errFormat = errors.New("the file of rates has a column that nobody knows")

// rates fails for good: to try again would not help, so its run is dead at once.
func (o office) rates(ctx *bus.Context, tx pgx.Tx, _ ReadRates) error {
	fire := ctx.Info().Fire
	if _, err := tx.Exec(ctx, o.sql.Get("effect"), fire.Manifest, fire.Due); err != nil { // is undone with the rest
		return err
	}
	return saga.Permanent(errFormat)
}
