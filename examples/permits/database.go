package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schema.sql
var schemaSQL string

//go:embed tables.sql
var tablesSQL string

//go:embed check.sql
var checkSQL string

type statements = pg.Statements

// engineSchema is where Edda's tables are, beside ours.
func engineSchema(own string) string { return own + "_edda" }

// load renders the statements that name the engine's schema.
func load(own string) (statements, error) {
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
	config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{own}.Sanitize()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return pool, nil
}

// database is what the parent and -verify work with.
type database struct {
	pool *pgxpool.Pool
	sql  statements
	own  string // the schema of our tables
}

func openDatabase(ctx context.Context, dsn, own string) (*database, error) {
	sql, err := load(own)
	if err != nil {
		return nil, fmt.Errorf("-schema: %w", err)
	}
	pool, err := connect(ctx, dsn, own, "permits")
	if err != nil {
		return nil, err
	}
	return &database{pool: pool, sql: sql, own: own}, nil
}

// found is a run as the database has it.
type found struct {
	store   string
	kills   int // asked for
	lasting time.Duration
	begun   time.Time // by the database's clock, as now
	now     time.Time
}

// prepare makes our tables and the engine's, unless an earlier process did; then the run is continued.
func (d *database) prepare(ctx context.Context) (isNew bool, err error) {
	if isNew, err = d.create(ctx); err != nil {
		return false, fmt.Errorf("prepare schema %s: %w", d.own, err)
	}
	return isNew, migrate.Up(ctx, d.pool, migrate.Options{Schema: engineSchema(d.own)})
}

// create does nothing when the schema is ours, and refuses one that holds anything else.
func (d *database) create(ctx context.Context) (isNew bool, err error) {
	var kept bool
	if err := d.pool.QueryRow(ctx, d.sql.Get("has_run")).Scan(&kept); err != nil || kept {
		return false, err
	}
	return true, pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, name := range []string{d.own, engineSchema(d.own)} {
			if err := vacant(ctx, tx, name); err != nil {
				return err
			}
		}
		own, err := ofSchema(d.own)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, own.Get("create_schema")); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, d.sql.Get("create_tables"), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

func vacant(ctx context.Context, tx pgx.Tx, name string) error {
	sql, err := ofSchema(name)
	if err != nil {
		return err
	}
	var exists bool
	if err := tx.QueryRow(ctx, sql.Get("exists")).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return fmt.Errorf("schema %s is there and holds no run of this program: name another by -schema", name)
	}
	return nil
}

func ofSchema(name string) (statements, error) {
	schema, err := pg.ParseSchema(name)
	if err != nil {
		return nil, err
	}
	return pg.Load(schemaSQL, schema)
}

// begin starts the clock of the run, or finds the one that is to be continued.
func (d *database) begin(ctx context.Context, s settings, l *eventLog) (found, error) {
	if _, err := d.pool.Exec(ctx, d.sql.Get("begin_run"), l.Sum, s.store, s.kills, s.lasting); err != nil {
		return found{}, fmt.Errorf("begin the run of schema %s: %w", d.own, err)
	}
	r, err := d.readRun(ctx, l)
	if err == nil && r.store != s.store {
		err = fmt.Errorf("schema %s holds a run with -store %s: continue it with that, or name another -schema", d.own,
			r.store)
	}
	return r, err
}

// readRun reads the run, and sees that it was made from this log.
func (d *database) readRun(ctx context.Context, l *eventLog) (r found, err error) {
	var sum []byte
	err = d.pool.QueryRow(ctx, d.sql.Get("read_run")).Scan(&sum, &r.store, &r.kills, &r.lasting, &r.begun, &r.now)
	switch {
	case pg.ClassOf(err) == pg.Unprepared:
		return r, fmt.Errorf("schema %s holds no run: give -schema and DATABASE_URL as the run printed them", d.own)
	case errors.Is(err, pgx.ErrNoRows):
		return r, fmt.Errorf("schema %s holds a run that ended before it began: run it again", d.own)
	case err != nil:
		return r, fmt.Errorf("read the run of schema %s: %w", d.own, err)
	case string(sum) != string(l.Sum):
		return r, fmt.Errorf("schema %s holds the run of another log than %s: give that one, or name another -schema",
			d.own, l.Name)
	}
	return r, nil
}

func (r found) pace(l *eventLog) pace {
	return pace{Begun: r.begun, Lasting: r.lasting, First: l.Events[0].At, Last: l.Events[len(l.Events)-1].At}
}

// drop removes everything the run has written.
func (d *database) drop(ctx context.Context) error {
	var all error
	for _, name := range []string{d.own, engineSchema(d.own)} {
		sql, err := ofSchema(name)
		if err == nil {
			_, err = d.pool.Exec(ctx, sql.Get("drop_schema"))
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("drop schema %s: %w", name, err))
		}
	}
	return all
}
