package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
)

//go:embed statements.sql
var statementsText string

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program, as a worker or as the parent of workers. It returns the exit code.
func start(args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if procs.IsWorker(assignmentVariable) {
		return code(work(ctx), errs)
	}
	flags := flag.NewFlagSet("watermill", flag.ContinueOnError)
	flags.SetOutput(errs)
	total := flags.Int("n", 5000, "messages of the exchange")
	kills := flags.Int("kill", 4, "workers to kill while they hold an open transaction")
	rooms := flags.Int("rooms", 100, "commands of the tour")
	schema := flags.String("schema", "edda_watermill", "schema to work in; it is dropped before and after")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *total < 1 || *kills < 0 || *rooms < 1 || flags.NArg() > 0:
		_, _ = fmt.Fprintln(errs, "watermill: want -n 1 or more, -kill 0 or more, -rooms 1 or more, and nothing else")
		return 2
	}
	return code(perform(ctx, exchange{schema: *schema, total: *total, kills: *kills, out: out, errs: errs}, *rooms),
		errs)
}

func code(err error, errs io.Writer) int {
	if err != nil {
		_, _ = fmt.Fprintln(errs, "watermill:", err)
		return 1
	}
	return 0
}

// perform takes the server that DATABASE_URL names, or starts one for the time being.
func perform(ctx context.Context, x exchange, rooms int) (err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Log: x.errs})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	x.dsn = server.DSN()
	if err := drop(ctx, x); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx), x)) }()
	if err := takeTour(ctx, x.dsn, x.schema, rooms, x.out); err != nil {
		return err
	}
	return x.run(ctx)
}

func drop(ctx context.Context, x exchange) error {
	return x.onPlace(ctx, func(p *place) error {
		_, err := p.pool.Exec(ctx, p.sql.Get("drop"))
		return err
	})
}
