package migrations

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
)

//go:embed migrate.sql
var migrateSQL string

// Options configure Up and Status.
type Options struct {
	Schema  string          // "" is "edda"
	Logger  *slog.Logger    // gets a line for each try that has to wait for a lock; nil is slog.Default()
	Applied func(Migration) // called by Up after each migration that this call has applied
}

// Migration is one migration, and when it was applied to a schema.
type Migration struct {
	Version  int64
	Name     string
	Breaking bool
	Applied  time.Time // zero if it is not applied
	Unknown  bool      // a newer program has applied it; this one does not have it
}

// Up creates the schema if it does not exist, and applies the missing migrations. It is safe for concurrent use, also
// by several processes. No statement of a migration waits longer than two seconds for a lock, because every statement
// of other sessions on that table waits behind it. If it does not get the lock, Up rolls the migration back, logs
// which session holds the lock, pauses so that other sessions can use the table, and tries again. It returns an error
// if that has taken a minute. While another process applies a migration, Up waits until ctx ends.
func Up(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	schema, statements, err := load(o.Schema)
	if err != nil {
		return err
	}
	if err := prepare(ctx, pool, statements); err != nil {
		return fmt.Errorf("prepare schema %q: %w", schema.Name(), explain(err))
	}
	u := &upgrade{db: pool, schema: schema, statements: statements, applied: o.Applied,
		log: cmp.Or(o.Logger, slog.Default())}
	db := stdlib.OpenDBFromPool(pool)
	provider, err := goose.NewProvider(goose.DialectCustom, db, nil,
		goose.WithStore(store{statements}),
		goose.WithGoMigrations(u.steps()...),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return errors.Join(fmt.Errorf("migrate schema %q: %w", schema.Name(), pgerr.ExplainPooler(err)), db.Close())
	}
	for again := true; again; {
		_, err = provider.Up(ctx)
		u.tell(err)
		again, err = u.again(ctx, err)
	}
	if err != nil {
		err = fmt.Errorf("migrate schema %q: %w", schema.Name(), explain(err))
	}
	return errors.Join(err, provider.Close()) // closes db; the pool stays open
}

// explain adds the remedy to errors of poolers, and to errors of roles that may not create tables.
func explain(err error) error {
	if pgerr.ClassOf(err) == pgerr.Denied {
		return fmt.Errorf("%w (this role may not make Edda's tables: let the owner of the schema or of the database "+
			"call migrations.Up or run \"edda migrate up\", and the script of \"edda migrate grants\" for this role; "+
			"docs/operate/roles.md)", err)
	}
	return pgerr.ExplainPooler(err)
}

// Status returns all migrations of this program and the schema, oldest first. In a missing schema none is applied.
func Status(ctx context.Context, pool *pgxpool.Pool, o Options) ([]Migration, error) {
	schema, statements, err := load(o.Schema)
	if err != nil {
		return nil, err
	}
	status := map[int64]Migration{}
	for _, m := range all() {
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

// prepare creates the table of versions. It uses READ COMMITTED, because at a higher isolation level a process that
// has waited could not see the table that the other process has created.
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

// preparation returns the statements before the first migration. A script begins with them, too.
func preparation(statements pg.Statements) string {
	return native(statements) + ";\n\n" + statements.Get("prepare")
}

func native(statements pg.Statements) string { return statements.Get("search_path") }

// migrationSettings returns the SET LOCAL statements of a migration's transaction.
func migrationSettings(statements pg.Statements) string {
	return native(statements) + ";\n" + statements.Get("lock_timeout")
}

func prepared(ctx context.Context, pool *pgxpool.Pool, statements pg.Statements) (there bool, err error) {
	err = pool.QueryRow(ctx, statements.Get("exists")).Scan(&there)
	return there, err
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
	list := make([]Migration, 0, len(status))
	for _, m := range status {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Migration) int { return int(a.Version - b.Version) })
	return list
}
