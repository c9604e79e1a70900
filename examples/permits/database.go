package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tablesSQL string

//go:embed check.sql
var checkSQL string

const undefinedTable = "42P01"

// engineSchema is where Edda's tables are, beside ours.
func engineSchema(own string) string { return own + "_edda" }

// database has the tables of a run.
type database struct {
	pool *pgxpool.Pool
	sql  map[string]string // statements by name, which name the engine's schema
	own  string            // the schema of our tables
}

// openDatabase opens a pool whose sessions find our tables without naming their schema.
func openDatabase(ctx context.Context, dsn, own string) (*database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{own}.Sanitize()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return &database{pool: pool, sql: load(tablesSQL+"\n"+checkSQL, engineSchema(own)), own: own}, nil
}

// load reads the statements of a text, each below a line with its name, and puts in the engine's schema.
func load(text, schema string) map[string]string {
	text = strings.NewReplacer(":schema", pgx.Identifier{schema}.Sanitize(),
		":'schema'", "'"+strings.ReplaceAll(schema, "'", "''")+"'").Replace(text)
	all := map[string]string{}
	for _, block := range strings.Split("\n"+text, "\n-- name: ")[1:] {
		name, sql, _ := strings.Cut(block, "\n")
		all[name] = sql
	}
	return all
}

// drop removes both schemas.
func (d *database) drop(ctx context.Context) error {
	for _, name := range []string{engineSchema(d.own), d.own} {
		if _, err := d.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			return fmt.Errorf("drop schema %s: %w", name, err)
		}
	}
	return nil
}

// prepare makes our tables and the engine's, unless an earlier process did; then the run goes on.
func (d *database) prepare(ctx context.Context) error {
	if err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return d.create(ctx, tx) }); err != nil {
		return fmt.Errorf("prepare schema %s: %w", d.own, err)
	}
	return migrate.Up(ctx, d.pool, migrate.Options{Schema: engineSchema(d.own)})
}

// create makes our tables, one process at a time. It refuses a schema that holds anything else.
func (d *database) create(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, d.sql["lock_run"], d.own); err != nil {
		return err
	}
	var ours, taken bool
	if err := tx.QueryRow(ctx, d.sql["has_run"], d.own).Scan(&ours, &taken); err != nil || ours {
		return err
	}
	if taken {
		return errors.New("it is there and holds no run of this program: name another by -schema")
	}
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{d.own}.Sanitize()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, d.sql["create_tables"], pgx.QueryExecModeSimpleProtocol)
	return err
}

// found is a run as the database has it.
type found struct {
	store   string
	lasting time.Duration
	begun   time.Time // by the database's clock, as now
	now     time.Time
}

func (r found) pace(l *eventLog) pace {
	return pace{Begun: r.begun, Lasting: r.lasting, First: l.Events[0].At, Last: l.Events[len(l.Events)-1].At}
}

// begin starts the clock of the run, or finds the run that is to go on.
func (d *database) begin(ctx context.Context, s settings, l *eventLog) (found, error) {
	if _, err := d.pool.Exec(ctx, d.sql["begin_run"], l.Sum, s.store, s.lasting); err != nil {
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
	var failed *pgconn.PgError
	err = d.pool.QueryRow(ctx, d.sql["read_run"]).Scan(&sum, &r.store, &r.lasting, &r.begun, &r.now)
	switch {
	case errors.As(err, &failed) && failed.Code == undefinedTable:
		return r, fmt.Errorf("schema %s holds no run: give -schema and DATABASE_URL as the run had them", d.own)
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
