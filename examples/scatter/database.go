package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tables string

//go:embed check.sql
var checkSQL string

// errWrong is the answer of the check: the exit code is 1.
var errWrong = errors.New("not everything is as it should be")

// open starts a Postgres that waits for its disk, plays the rounds, and takes everything away.
func open(ctx context.Context, s settings, out io.Writer) (err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	own := "scatter_" + strings.ToLower(rand.Text()[:8]) // DATABASE_URL may name a server that others use
	pool, err := connect(ctx, server.DSN(), own)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx), pool, own)) }()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{own}.Sanitize()); err != nil {
		return fmt.Errorf("make the program's schema: %w", err)
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the program's tables: %w", err)
	}
	return playAll(ctx, s, lab{pool, own, out})
}

// lab is where rounds are played.
type lab struct {
	pool *pgxpool.Pool
	own  string // schema
	out  io.Writer
}

func connect(ctx context.Context, dsn, own string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = own
	config.MaxConns = max(config.MaxConns, 8)
	return pgxpool.NewWithConfig(ctx, config)
}

func drop(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if _, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("drop schema %s: %w", schema, err)
	}
	return nil
}

// playAll plays every design with every store and prints what came out.
func playAll(ctx context.Context, s settings, l lab) error {
	var lines []line
	var runs []string
	for _, design := range s.designs {
		for _, store := range s.stores {
			name := store
			if design == appendDesign { // its saga is hardly ever written, so the store does not matter
				name = "-"
			}
			r := &round{settings: s, pool: l.pool, design: design, store: storeOf[store],
				schema: l.own + "_" + design + "_" + store,
				line:   line{design: design, store: name, requests: s.requests}}
			if err := r.play(ctx); err != nil {
				return err
			}
			lines, runs = append(lines, r.line), append(runs, r.runs...)
			_, _ = fmt.Fprintf(l.out, "%s, %s: %d scatters of %d requests, %s each\n", design, name, r.line.scatters,
				s.requests, milliseconds(r.line.each()))
			if name == "-" {
				break
			}
		}
	}
	_, _ = fmt.Fprintln(l.out)
	return errors.Join(printTable(l.out, lines), check(ctx, l, s.requests, runs))
}

var storeOf = map[string]saga.Store{"optimistic": saga.Optimistic, "pessimistic": saga.Pessimistic}

const listed = 10 // faults that are printed

// check compares the end of every run with what it must be.
func check(ctx context.Context, l lab, requests int, runs []string) error {
	rows, err := l.pool.Query(ctx, checkSQL, runs, requests)
	if err != nil {
		return fmt.Errorf("check the runs: %w", err)
	}
	var name, fault string
	checked, wrong := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&name, &fault}, func() error {
		checked++
		if fault == "" {
			return nil
		}
		if wrong++; wrong <= listed {
			_, _ = fmt.Fprintf(l.out, "wrong: %s: %s\n", name, fault)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check the runs: %w", err)
	}
	_, _ = fmt.Fprintf(l.out, "runs=%d wrong=%d: every reply was counted once, and every design and store came to "+
		"the same sum, unless something is wrong\n", checked, wrong)
	if wrong > 0 || checked != len(runs) {
		return fmt.Errorf("%w: %d of %d runs are wrong", errWrong, wrong, checked)
	}
	return nil
}
