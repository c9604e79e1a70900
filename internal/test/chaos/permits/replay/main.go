package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tablesSQL string

//go:embed check.sql
var checkSQL string

const (
	own    = "permits"      // the schema of the program's tables
	engine = "permits_edda" // the schema of Edda's
)

func main() {
	log := flag.String("log", "", "the event log, a CSV `file`")
	lasting := flag.Duration("for", time.Minute, "how long the replay takes, from the first event to the last")
	verify := flag.Bool("verify", false, "do not run, check the tables of a run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, *log, *lasting, *verify); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "replay: %v\n", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, path string, lasting time.Duration, verify bool) error {
	l, err := readLog(path)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.pool.Close()
	if !verify {
		if err := replay(ctx, db, l, lasting); err != nil {
			return err
		}
	}
	return report(ctx, db, l, os.Stdout)
}

// database has the tables of a run.
type database struct {
	pool *pgxpool.Pool
	sql  map[string]string // statements by name
}

// openDatabase opens a pool whose sessions find our tables without naming their schema.
func openDatabase(ctx context.Context, dsn string) (*database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = own
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	d := &database{pool: pool, sql: map[string]string{}}
	text := strings.ReplaceAll(tablesSQL+"\n"+checkSQL, ":schema", engine)
	for _, block := range strings.Split("\n"+text, "\n-- name: ")[1:] {
		name, sql, _ := strings.Cut(block, "\n")
		d.sql[name] = sql
	}
	return d, nil
}

// prepare makes our tables and the engine's, one process at a time, unless an earlier process did, and begins the run.
func (d *database) prepare(ctx context.Context, lasting time.Duration) error {
	err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, d.sql["lock_run"]); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, d.sql["create_tables"], pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err == nil {
		err = migrations.Up(ctx, d.pool, migrations.Options{Schema: engine})
	}
	if err == nil {
		_, err = d.pool.Exec(ctx, d.sql["begin_run"], lasting)
	}
	if err != nil {
		return fmt.Errorf("prepare the run: %w", err)
	}
	return nil
}

// readRun reads the pace of the run, and the database's clock.
func (d *database) readRun(ctx context.Context, l *eventLog) (p pace, now time.Time, err error) {
	p.First, p.Last = l.Events[0].At, l.Events[len(l.Events)-1].At
	if err := d.pool.QueryRow(ctx, d.sql["read_run"]).Scan(&p.Lasting, &p.Begun, &now); err != nil {
		return p, now, fmt.Errorf("read the run: %w", err)
	}
	return p, now, nil
}
