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
	"strings"
	"syscall"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/examples/two-databases/broker"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	count := flag.Int("orders", 20, "how many are placed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	cache, err := os.UserCacheDir()
	if err == nil {
		err = run(ctx, filepath.Join(cache, "edda-two-databases"), *count, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run runs both services in this process, places orders, and ends when each has ended. The folder is the broker's.
func run(ctx context.Context, folder string, count int, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	url, stopBroker, err := broker.Start(folder)
	if err != nil {
		return err
	}
	defer stopBroker()
	if err := broker.Provision(ctx, url); err != nil {
		return err
	}
	s, err := open(ctx, url, newNarrator(out, told))
	if err != nil {
		return err
	}
	defer s.close()
	buyers := edda.RunnerFunc(func(ctx context.Context) error {
		defer stop()
		return s.sell(ctx, count, out)
	})
	host, err := edda.NewHost(s.orders, s.payments, buyers)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

const told = 3 // orders whose way is told

// shop is both services.
type shop struct {
	narrator *narrator
	orders   *orders.Service
	payments *payments.Service
	here     *pgxpool.Pool // of the orders
	there    *pgxpool.Pool // of the payments
	closing  []func()
}

func (s *shop) close() {
	for _, end := range s.closing {
		end()
	}
}

// open makes the tables of both services in the database of each, and puts them together.
func open(ctx context.Context, url string, n *narrator) (_ *shop, err error) {
	s := &shop{narrator: n}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.here, err = s.connect(ctx, "orders"); err != nil {
		return nil, err
	}
	if s.there, err = s.connect(ctx, "payments"); err != nil {
		return nil, err
	}
	pub, err := broker.NewPublisher(url, "two-databases")
	if err != nil {
		return nil, err
	}
	s.closing = append([]func(){func() { _ = pub.Close() }}, s.closing...)
	sub := broker.Subscriber{URL: url, Name: "two-databases"}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s.orders, err = orders.New(s.here, n.Follow("orders", pub), sub,
		orders.Options{Logger: quiet, Events: n.Listen("orders")})
	if err != nil {
		return nil, err
	}
	s.payments, err = payments.New(s.there, n.Follow("payments", pub), sub,
		payments.Options{Logger: quiet, Events: n.Listen("payments")})
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.orders.Install(ctx), s.payments.Install(ctx))
}

// connect opens the database of a service, given by ORDERS_DATABASE_URL or PAYMENTS_DATABASE_URL, or else a private
// Postgres.
func (s *shop) connect(ctx context.Context, service string) (pool *pgxpool.Pool, err error) {
	variable := strings.ToUpper(service) + "_DATABASE_URL"
	if dsn := os.Getenv(variable); dsn != "" {
		pool, err = pgxpool.New(ctx, dsn)
	} else if os.Getenv("DATABASE_URL") != "" {
		return nil, fmt.Errorf("DATABASE_URL is one database, and this program needs two: set %s, or unset all "+
			"three", variable)
	} else {
		pool, err = eddadev.Connect(ctx, service)
	}
	if err == nil {
		s.closing = append(s.closing, pool.Close)
	}
	return pool, err
}
