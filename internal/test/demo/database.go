package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Database is where a program has its tables.
type Database struct {
	Pool *pgxpool.Pool // its sessions find the program's tables without the name of their schema
	DSN  string
	Own  string // the schema of the program's tables
	Edda string // the schema of Edda's tables
}

// EddaSchema is the schema of Edda's tables beside the program's own.
func EddaSchema(own string) string { return own + "_edda" }

// WithDatabase is OnDatabase on the server of DATABASE_URL, or else on a server that it starts and deletes.
func WithDatabase(ctx context.Context, name, tables string, f func(d *Database) error) error {
	return OnDatabase(ctx, "", name, tables, f)
}

// OnDatabase creates the tables of the program called name and the tables of Edda, calls f, and drops them all. dsn is
// a connection string. If it is "", OnDatabase uses the server of DATABASE_URL, or else starts a durable server and
// deletes it at the end.
func OnDatabase(ctx context.Context, dsn, name, tables string, f func(d *Database) error) (err error) {
	if dsn == "" {
		server, err := pgdev.Start(ctx, pgdev.Options{Durable: true})
		if err != nil {
			return err
		}
		return errors.Join(OnDatabase(ctx, server.DSN(), name, tables, f), server.Stop())
	}
	own := name + "_" + strings.ToLower(rand.Text()[:8]) // others may use the server
	d, err := Connect(ctx, dsn, own, name)
	if err != nil {
		return err
	}
	defer d.Pool.Close()
	defer func() { err = errors.Join(err, d.Drop(context.WithoutCancel(ctx))) }()
	if err := d.Create(ctx, tables); err != nil {
		return err
	}
	return f(d)
}

// Connect opens a pool whose sessions carry the name session.
func Connect(ctx context.Context, dsn, own, session string) (*Database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = session
	config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{own}.Sanitize()
	config.MaxConns = max(config.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &Database{Pool: pool, DSN: dsn, Own: own, Edda: EddaSchema(own)}, err
}

// Create makes the program's tables and Edda's.
func (d *Database) Create(ctx context.Context, tables string) error {
	if _, err := d.Pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{d.Own}.Sanitize()); err != nil {
		return fmt.Errorf("make the program's schema: %w", err)
	}
	if _, err := d.Pool.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the program's tables: %w", err)
	}
	return migrations.Up(ctx, d.Pool, migrations.Options{Schema: d.Edda})
}

// Drop takes both schemas away.
func (d *Database) Drop(ctx context.Context) error {
	return errors.Join(DropSchema(ctx, d.Pool, d.Edda), DropSchema(ctx, d.Pool, d.Own))
}

// DropSchema takes a schema away with everything in it.
func DropSchema(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if _, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("drop schema %s: %w", name, err)
	}
	return nil
}
