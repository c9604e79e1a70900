package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/examples/remote/shop"
	"github.com/edda-go/edda/examples/remote/worker"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/scheduler"
)

func main() {
	lasting := flag.Duration("for", 10*time.Second, "how long the schedule runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	cache, err := os.UserCacheDir()
	if err == nil {
		err = run(ctx, filepath.Join(cache, "edda-remote"), *lasting, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run runs the shop and the worker for a while, and checks. The folder holds the files of the broker, and the invoices.
func run(ctx context.Context, folder string, lasting time.Duration, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	invoices := filepath.Join(folder, "invoices")
	if err := os.MkdirAll(invoices, 0o700); err != nil {
		return err
	}
	url, stopBroker, err := startBroker(folder)
	if err != nil {
		return err
	}
	defer stopBroker()
	if err := provision(ctx, url); err != nil {
		return err
	}
	pool, err := eddadev.Connect(ctx, "remote")
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool, migrations.Options{}); err != nil {
		return err
	}
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	if err != nil {
		return err
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	here, err1 := connect(url)
	there, err2 := connect(url)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	defer here.close()
	defer there.close()
	host, err := edda.NewHost(
		edda.RunnerFunc(func(ctx context.Context) error {
			return shop.Run(ctx, pool, quiet, here.publisher, here.subscribe)
		}),
		edda.RunnerFunc(func(ctx context.Context) error { // which does not use the pool
			return worker.Run(ctx, invoices, quiet, there.publisher, there.subscribe)
		}),
		edda.RunnerFunc(func(ctx context.Context) error {
			defer stop()
			return office{store, invoices}.open(ctx, lasting, out)
		}))
	if err != nil {
		return err
	}
	if err := host.Run(ctx); err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	return nil
}
