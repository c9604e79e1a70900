package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

// workerVariable makes this program a worker; its value is the worker as JSON.
const workerVariable = "EDDA_TWO_DATABASES_WORKER"

// worker is what one process is told when it starts.
type worker struct {
	Name      string // in pg_stat_activity, and at the broker
	Service   string // orders or payments
	DSN       string
	Broker    string // the URL of its nodes
	PayWithin time.Duration
}

// service is what the two have in common.
type service interface {
	Install(ctx context.Context) error
	Check(ctx context.Context) error
	Run(ctx context.Context) error
	Bus() *bus.Bus
}

// work is the whole life of a worker process. It ends by SIGKILL, or in order when its parent asks it to or has died.
func work(ctx context.Context) error {
	w := worker{}
	ctx, err := procs.Attend(ctx, workerVariable, &w)
	if err != nil {
		return err
	}
	for {
		came, err := w.serve(ctx)
		if came || ctx.Err() != nil {
			return err
		}
		slog.Warn("the service did not come up, and tries again", "error", err)
		if run.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
}

// coming is how long a service may take to come up. One that ends with an error before has met a database that is away,
// for which a program is started again by whoever watches over it. After that nothing that dies may end it.
const coming = 2 * time.Second

// serve runs the service once. It tells whether it came up.
func (w worker) serve(ctx context.Context) (came bool, err error) {
	pool, err := connect(ctx, w.DSN, w.Name)
	if err != nil {
		return true, err
	}
	defer pool.Close()
	s, closing, err := w.open(pool, reporter{os.Stdout})
	if err != nil {
		return true, err
	}
	defer closing()
	if err := s.Check(ctx); err != nil {
		return false, err
	}
	begun := time.Now()
	err = s.Run(ctx)
	return err == nil || time.Since(begun) > coming, err
}

// open puts the worker's service together, over its database and the broker. An observer, when it is not nil,
// looks on.
func (w worker) open(pool *pgxpool.Pool, by observer) (s service, closing func(), err error) {
	pub, err := publisher(w.Broker, w.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("open a publisher: %w", err)
	}
	closing = func() { _ = pub.Close() }
	var events func(bus.Event)
	if by != nil {
		pub, events = by.follow(w.Service, pub), by.listen(w.Service)
	}
	sub := subscriber{url: w.Broker, name: w.Name}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if w.Service == ordersService {
		s, err = orders.New(pool, pub, sub, orders.Options{PayWithin: w.PayWithin, Logger: log, Events: events})
	} else {
		s, err = payments.New(pool, pub, sub, payments.Options{Logger: log, Events: events})
	}
	if err != nil {
		closing()
		return nil, nil, err
	}
	return s, closing, nil
}

// observer looks on while a service works.
type observer interface {
	listen(service string) func(bus.Event)
	follow(service string, p message.Publisher) message.Publisher
}

// reporter tells the parent how many messages came that were there before.
type reporter struct{ out io.Writer }

func (r reporter) listen(string) func(bus.Event) {
	return func(e bus.Event) {
		if a, ok := e.(bus.Arrivals); ok && a.Repeated > 0 {
			_, _ = fmt.Fprintln(r.out, a.Repeated) // the parent counts what it hears
		}
	}
}

func (reporter) follow(_ string, p message.Publisher) message.Publisher { return p }

const (
	ordersService   = "orders"
	paymentsService = "payments"
)

func connect(ctx context.Context, dsn, name string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.MaxConns = max(config.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return pool, nil
}
