package migrate

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgerr"
	"github.com/edda-go/edda/migrations"
)

//go:embed migrate.sql
var migrateSQL string

// Options for Up and Status.
type Options struct {
	Schema string // "" is "edda"
}

// Migration is one migration and when it was applied to a schema.
type Migration struct {
	Version  int64
	Name     string
	Breaking bool
	Applied  time.Time // zero: not yet
	Unknown  bool      // applied by a newer program; this one does not have it
}

// Up creates the schema if it does not exist, and applies the missing migrations. It may run in several processes at
// once.
func Up(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	schema, statements, err := load(o.Schema)
	if err != nil {
		return err
	}
	if err := prepare(ctx, pool, statements); err != nil {
		return fmt.Errorf("prepare schema %q: %w", schema.Name(), pgerr.ExplainPooler(err))
	}
	db := stdlib.OpenDBFromPool(pool)
	provider, err := goose.NewProvider(goose.DialectCustom, db, nil,
		goose.WithStore(store{statements}),
		goose.WithGoMigrations(steps(schema, statements)...),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return errors.Join(fmt.Errorf("migrate schema %q: %w", schema.Name(), pgerr.ExplainPooler(err)), db.Close())
	}
	if _, err = provider.Up(ctx); err != nil {
		err = fmt.Errorf("migrate schema %q: %w", schema.Name(), pgerr.ExplainPooler(err))
	}
	return errors.Join(err, provider.Close()) // closes db; the pool stays open
}

// Status returns every migration that this program or the schema has, oldest first. In a schema that does not exist
// none is applied.
func Status(ctx context.Context, pool *pgxpool.Pool, o Options) ([]Migration, error) {
	schema, statements, err := load(o.Schema)
	if err != nil {
		return nil, err
	}
	status := map[int64]Migration{}
	for _, m := range migrations.All() {
		status[m.Version] = Migration{Version: m.Version, Name: m.Name, Breaking: m.Breaking}
	}
	applied, err := appliedTo(ctx, pool, statements)
	if err != nil {
		return nil, fmt.Errorf("read the migrations of schema %q: %w", schema.Name(), err)
	}
	for _, m := range applied {
		_, known := status[m.Version]
		m.Unknown = !known
		status[m.Version] = m
	}
	return sorted(status), nil
}

func load(name string) (pg.Schema, pg.Statements, error) {
	schema, err := pg.ParseSchema(name)
	if err != nil {
		return pg.Schema{}, nil, err
	}
	return schema, pg.Load(migrateSQL, schema), nil
}

// prepare creates the table of versions. It asks for READ COMMITTED, because at another default isolation a process
// that has waited would not see the table of the other process.
func prepare(ctx context.Context, pool *pgxpool.Pool, statements pg.Statements) error {
	if done, err := prepared(ctx, pool, statements); err != nil || done {
		return err
	}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, preparation(statements))
		return err
	})
}

// preparation returns the statements before the first migration, with which a script begins, too.
func preparation(statements pg.Statements) string { return statements.Get("prepare") }

func prepared(ctx context.Context, pool *pgxpool.Pool, statements pg.Statements) (there bool, err error) {
	err = pool.QueryRow(ctx, statements.Get("exists")).Scan(&there)
	return there, err
}

// steps wraps each file into a transaction of goose. It does not use goose's reader of SQL files, which splits a file
// at line ends and can be misled by the name of a schema.
func steps(schema pg.Schema, statements pg.Statements) []*goose.Migration {
	var all []*goose.Migration
	for _, m := range migrations.All() {
		all = append(all, goose.NewGoMigration(m.Version,
			&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
				return apply(ctx, tx, statements.Get("claim"), m, schema)
			}}, nil))
	}
	return all
}

func apply(ctx context.Context, tx *sql.Tx, claim string, m migrations.Migration, schema pg.Schema) error {
	if _, err := tx.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"); err != nil {
		return err
	}
	claimed, err := tx.ExecContext(ctx, claim, m.Version, m.Name, m.Breaking)
	if err != nil {
		return fmt.Errorf("claim migration %d: %w", m.Version, err)
	}
	if rows, err := claimed.RowsAffected(); err != nil || rows == 0 {
		return err // 0 rows: another process has applied it
	}
	if _, err := tx.ExecContext(ctx, schema.Render(m.Text)); err != nil {
		return fmt.Errorf("apply migration %d (%s): %w", m.Version, m.Name, err)
	}
	return nil
}

func appliedTo(ctx context.Context, pool *pgxpool.Pool, statements pg.Statements) ([]Migration, error) {
	if there, err := prepared(ctx, pool, statements); err != nil || !there {
		return nil, err
	}
	rows, err := pool.Query(ctx, statements.Get("applied"))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Migration, err error) {
		err = row.Scan(&m.Version, &m.Name, &m.Breaking, &m.Applied)
		return m, err
	})
}

func sorted(status map[int64]Migration) []Migration {
	all := make([]Migration, 0, len(status))
	for _, m := range status {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Migration) int { return int(a.Version - b.Version) })
	return all
}
