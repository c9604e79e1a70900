package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tables string

// database is a pool whose sessions find the shop's table without its schema's name, and where Edda's tables are.
type database struct {
	pool   *pgxpool.Pool
	engine string
}

// withDatabase starts a Postgres, makes the tables, calls f, and takes everything away.
func withDatabase(ctx context.Context, f func(d database) error) (err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	own := "web_" + strings.ToLower(rand.Text()[:8]) // DATABASE_URL may name a server that others use
	d, err := connect(ctx, server.DSN(), own)
	if err != nil {
		return err
	}
	defer d.pool.Close()
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx), own, d.engine)) }()
	if err := d.create(ctx, own); err != nil {
		return err
	}
	return f(d)
}

func connect(ctx context.Context, dsn, own string) (database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return database{}, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = own
	config.MaxConns = max(config.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return database{pool: pool, engine: own + "_edda"}, err
}

func (d database) create(ctx context.Context, own string) error {
	if _, err := d.pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{own}.Sanitize()); err != nil {
		return fmt.Errorf("make the shop's schema: %w", err)
	}
	if _, err := d.pool.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the shop's table: %w", err)
	}
	return migrate.Up(ctx, d.pool, migrate.Options{Schema: d.engine})
}

func (d database) drop(ctx context.Context, schemas ...string) error {
	for _, name := range schemas {
		if _, err := d.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			return fmt.Errorf("drop schema %s: %w", name, err)
		}
	}
	return nil
}
