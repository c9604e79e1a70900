package main

import (
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// recorder writes what the saga did into tables of our own: a saga has no transaction to write with. Neither table
// has a unique constraint, so that what happens twice shows as two rows and is not refused.
type recorder struct {
	sql statements
	by  string // the worker
}

func (r recorder) filed(ctx *bus.Context, tx pgx.Tx, m filed) error {
	_, err := tx.Exec(ctx, r.sql.Get("record_effect"), m.Case, m.Line, m.Name, m.At, r.by)
	return err
}

func (r recorder) overdue(ctx *bus.Context, tx pgx.Tx, m overdue) error {
	_, err := tx.Exec(ctx, r.sql.Get("record_firing"), m.Case, m.Fired, r.by)
	return err
}
