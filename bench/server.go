package main

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settings fit a server under load for minutes: no checkpoint falls into a run, and nothing is cheated.
var settings = map[string]string{
	"shared_buffers":     "1GB",
	"max_wal_size":       "8GB",
	"checkpoint_timeout": "30min",
	"synchronous_commit": "on",
	"autovacuum":         "on",
}

// startServer starts a durable Postgres of our own, or takes the one DATABASE_URL names. The lateness of schedule is
// told by the times of commits, which a server notes only when it is asked to.
func startServer(ctx context.Context, log io.Writer, commitTimes bool) (*pgdev.Server, *pgxpool.Pool, error) {
	settings := maps.Clone(settings)
	if commitTimes {
		settings["track_commit_timestamp"] = "on"
	}
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Settings: settings, Log: log})
	if err != nil {
		return nil, nil, err
	}
	db, err := pgxpool.New(ctx, server.DSN())
	if err == nil {
		err = durable(ctx, db)
	}
	if err == nil && commitTimes {
		err = mustBeOn(ctx, db, "track_commit_timestamp")
	}
	return server, db, err
}

// durable refuses a server that confirms commits it may lose: its figures would mean nothing.
func durable(ctx context.Context, db *pgxpool.Pool) error {
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if err := mustBeOn(ctx, db, name); err != nil {
			return err
		}
	}
	return nil
}

func mustBeOn(ctx context.Context, db *pgxpool.Pool, name string) error {
	value, err := show(ctx, db, name)
	if err == nil && value != "on" {
		err = fmt.Errorf("the server has %s = %s; benchmarks run with on", name, value)
	}
	return err
}

// show reads a setting of the server.
func show(ctx context.Context, db *pgxpool.Pool, name string) (value string, err error) {
	err = db.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

// deadlocks is the server's own count of them in this database since it began.
func deadlocks(ctx context.Context, db *pgxpool.Pool) (n int64, err error) {
	err = db.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	return n, err
}

// describe reads what a reader of figures must know of the server.
func describe(ctx context.Context, db *pgxpool.Pool) (map[string]string, error) {
	facts := map[string]string{}
	for _, name := range []string{"server_version", "shared_buffers", "max_wal_size", "synchronous_commit"} {
		value, err := show(ctx, db, name)
		if err != nil {
			return nil, err
		}
		facts[name] = value
	}
	return facts, nil
}
