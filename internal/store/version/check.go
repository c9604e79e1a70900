package version

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
)

// Newest is the version of the newest file in package migrations. A test of that package compares them.
const Newest = 22

var (
	// ErrNotMigrated means that the schema does not exist, or is older than this program needs.
	ErrNotMigrated = errors.New("schema is not migrated")
	// ErrTooNew means that a newer program has changed the schema, and this program would damage data.
	ErrTooNew = errors.New("schema is too new for this program")
)

//go:embed check.sql
var checkSQL string

// Querier is implemented by a pool, a connection and a transaction of pgx.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns nil if this program can work with the schema, else ErrNotMigrated, ErrTooNew, or the error of the
// read. If q is a transaction and the schema does not exist, the transaction is aborted.
func Check(ctx context.Context, q Querier, schema pg.Schema) error {
	var newest, known, breaking int64
	err := q.QueryRow(ctx, pg.Load(checkSQL, schema).Get("check"), int64(Newest)).Scan(&newest, &known, &breaking)
	if err != nil {
		return unreadable(err, schema)
	}
	switch {
	case breaking > 0:
		return fmt.Errorf("%w: schema %q is at version %d, and its version %d refuses programs up to schema "+
			"version %d; run a newer program",
			ErrTooNew, schema.Name(), newest, breaking, Newest)
	case known < Newest:
		return fmt.Errorf("%w: schema %q has %d of the %d migrations this program needs; %s",
			ErrNotMigrated, schema.Name(), known, Newest, remedy)
	}
	return nil
}

const remedy = `call migrations.Up, or run the command "edda migrate up", or the script of migrations.SQL`

func unreadable(err error, schema pg.Schema) error {
	switch pgerr.ClassOf(err) {
	case pgerr.Unprepared:
		return fmt.Errorf("%w: there is no schema %q in this database, or it has no tables of Edda; %s", ErrNotMigrated,
			schema.Name(), remedy)
	case pgerr.Denied:
		return fmt.Errorf("read the version of schema %q: the role needs USAGE on the schema and SELECT on its "+
			"tables: run \"edda migrate grants\" and its script: %w", schema.Name(), err)
	default:
		return fmt.Errorf("read the version of schema %q: %w", schema.Name(), err)
	}
}
