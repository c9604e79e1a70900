package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tablesSQL string

//go:embed check.sql
var checkSQL string

// engineSchema is where Edda's tables are, beside ours.
func engineSchema(own string) string { return own + "_edda" }

// load renders the statements that name the engine's schema.
func load(own string) (pg.Statements, error) {
	schema, err := pg.ParseSchema(engineSchema(own))
	if err != nil {
		return nil, err
	}
	return pg.Load(tablesSQL+"\n"+checkSQL, schema)
}

// connect opens a pool whose sessions carry the name, and find our tables without naming their schema.
func connect(ctx context.Context, dsn, own, name string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.ConnConfig.RuntimeParams["search_path"] = own
	config.MaxConns = max(config.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return pool, nil
}

// database is what the parent works with.
type database struct {
	pool *pgxpool.Pool
	sql  pg.Statements
	dsn  string
	own  string // the schema of our tables
}

// withDatabase starts a Postgres that waits for its disk, makes the tables, calls f, and takes everything away.
func withDatabase(ctx context.Context, f func(d *database) error) (err error) {
	from, err := pgdev.Start(ctx, pgdev.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Stop()) }()
	// DATABASE_URL may name a server that others use
	d := &database{dsn: from.DSN(), own: "scheduled_" + strings.ToLower(rand.Text()[:8])}
	if d.sql, err = load(d.own); err != nil {
		return err
	}
	if d.pool, err = connect(ctx, d.dsn, d.own, "scheduled"); err != nil {
		return err
	}
	defer d.pool.Close()
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if err := d.create(ctx); err != nil {
		return err
	}
	return f(d)
}

func (d *database) create(ctx context.Context) error {
	if _, err := d.pool.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{d.own}.Sanitize()); err != nil {
		return fmt.Errorf("make the program's schema: %w", err)
	}
	if _, err := d.pool.Exec(ctx, d.sql.Get("create_tables")); err != nil {
		return fmt.Errorf("make the program's tables: %w", err)
	}
	return migrate.Up(ctx, d.pool, migrate.Options{Schema: engineSchema(d.own)})
}

func (d *database) drop(ctx context.Context) error {
	var all error
	for _, name := range []string{d.own, engineSchema(d.own)} {
		if _, err := d.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			all = errors.Join(all, fmt.Errorf("drop schema %s: %w", name, err))
		}
	}
	return all
}

// number is a statement's only one.
func (d *database) number(ctx context.Context, name string, args ...any) (n int, err error) {
	if err := d.pool.QueryRow(ctx, d.sql.Get(name), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("ask the database (%s): %w", name, err)
	}
	return n, nil
}
