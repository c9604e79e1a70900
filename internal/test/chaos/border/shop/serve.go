package shop

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/broker"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Process is what one process of a service is told when it starts.
type Process struct {
	Name      string // in pg_stat_activity, and at the broker
	Service   string // orders or payments
	DSN       string
	Broker    string // the URL of its nodes
	PayWithin time.Duration
	Configure func(*bus.Options) `json:"-"` // changes the options of the bus; nil is nothing
}

// The services.
const (
	ordersService   = "orders"
	paymentsService = "payments"
)

// Service is what the two have in common.
type Service interface {
	Install(ctx context.Context) error
	Check(ctx context.Context) error
	Run(ctx context.Context) error
	Bus() *bus.Bus
}

// Serve runs the service in this process until ctx ends. A service that does not come up, because the database is away,
// is started again.
func (p Process) Serve(ctx context.Context) error {
	for {
		came, err := p.serve(ctx)
		if came || ctx.Err() != nil {
			return err
		}
		slog.Warn("the service did not come up, and tries again", "error", err)
		if run.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
}

// coming is how long a service may take to come up. After that nothing that dies may end it.
const coming = 2 * time.Second

// serve runs the service once. It reports whether the service came up.
func (p Process) serve(ctx context.Context) (came bool, err error) {
	pool, err := lab.OpenPool(ctx, p.DSN, p.Name, "")
	if err != nil {
		return true, err
	}
	defer pool.Close()
	s, closing, err := p.open(pool)
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

// open puts the service together, over its database and the broker.
func (p Process) open(pool *pgxpool.Pool) (s Service, closing func(), err error) {
	pub, err := broker.NewPublisher(p.Broker, p.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("open a publisher: %w", err)
	}
	closing = func() { _ = pub.Close() }
	sub := broker.Subscriber{URL: p.Broker, Name: p.Name}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if p.Service == ordersService {
		s, err = orders.New(pool, pub, sub, orders.Options{PayWithin: p.PayWithin, Logger: log, Configure: p.Configure})
	} else {
		s, err = payments.New(pool, pub, sub, payments.Options{Logger: log, Configure: p.Configure})
	}
	if err != nil {
		closing()
		return nil, nil, err
	}
	return s, closing, nil
}
