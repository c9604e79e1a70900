package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/pg"
)

//go:embed tables.sql
var tables string

//go:embed statements.sql
var statements string

//go:embed check.sql
var checkSQL string

// load renders the statements that name the engine's schema.
func load(own string) (pg.Statements, error) {
	schema, err := pg.ParseSchema(demo.EddaSchema(own))
	if err != nil {
		return nil, err
	}
	return pg.Load(statements+"\n"+checkSQL, schema), nil
}

// database is what the parent works with.
type database struct {
	*demo.Database
	sql pg.Statements
}

// number is a statement's only one.
func (d *database) number(ctx context.Context, name string, args ...any) (n int, err error) {
	if err := d.Pool.QueryRow(ctx, d.sql.Get(name), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("ask the database (%s): %w", name, err)
	}
	return n, nil
}
