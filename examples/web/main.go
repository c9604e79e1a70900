package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/jackc/pgx/v5/stdlib"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen; port 0 is a free one")
	pause := flag.Duration("pause", 2*time.Second, "how long the bank and the warehouse take, about")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", *address)
	if err == nil {
		err = run(ctx, listener, *pause)
	}
	if err != nil {
		log.Fatal(err)
	}
}

//go:embed tables.sql
var tables string

// run opens the shop, and closes it when ctx ends.
func run(ctx context.Context, listener net.Listener, pause time.Duration) error {
	defer func() { _ = listener.Close() }() // closed already where a server had it
	pool, err := eddadev.Connect(ctx, "web")
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	site, err := newSite(pool, db, b, slog.Default())
	if err != nil {
		return err
	}
	runners, err := endpoints(b, pause)
	if err != nil {
		return err
	}
	fmt.Printf("The shop is open at http://%s/ (Ctrl-C closes it)\n", listener.Addr())
	return eddadev.Run(ctx, b, append(runners, &program{site, listener})...)
}
