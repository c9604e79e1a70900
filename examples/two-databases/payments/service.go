package payments

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed tables.sql
var tables string

// relaying has a short lease, so that a second process soon takes over when the relaying process is killed. Messages of
// one order keep their order; different orders are published in parallel.
var relaying = watermill.RelayOptions{RelayOptions: outbox.RelayOptions{Lease: 3 * time.Second,
	MaxRetryDelay: 2 * time.Second}, Parallel: 8}

// Options of the service.
type Options struct {
	Logger    *slog.Logger
	Events    func(event.Event)
	Configure func(*bus.Options) // changes the options of the bus before it is made, as eddaotel does; nil is nothing
}

// Service is the payments service in one process. Any number of processes may run it.
type Service struct {
	pool *pgxpool.Pool
	bus  *bus.Bus
	host *edda.Host
}

// New puts the service together. It does no I/O with the database. Any broker that Watermill supports will do.
func New(pool *pgxpool.Pool, pub message.Publisher, sub message.Subscriber, o Options) (*Service, error) {
	options := bus.Options{Logger: o.Logger, Events: o.Events}
	if o.Configure != nil {
		o.Configure(&options)
	}
	b, err := bus.New(pool, options)
	if err != nil {
		return nil, err
	}
	s := &Service{pool: pool, bus: b}
	charging, err := bus.NewEndpoint(b, contract.Payments, bus.EndpointOptions{Concurrency: 2}, bus.HandleTx(charge))
	if err != nil {
		return nil, err
	}
	shipping, err := bus.NewEndpoint(b, "shipping", bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(ship))
	if err != nil {
		return nil, err
	}
	// The border. Commands are for the endpoint that is named; an event is for whoever is subscribed to it here. In
	// this database "orders" is an endpoint that gives its messages, which are answers, to the broker.
	commands, err := watermill.NewIntake(b, contract.Payments, sub,
		watermill.IntakeOptions{Endpoint: contract.Payments, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	events, err := watermill.NewIntake(b, contract.OrderEvents, sub, watermill.IntakeOptions{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	toOrders, err := watermill.NewRelay(b, contract.Orders, pub, relaying)
	if err != nil {
		return nil, err
	}
	s.host, err = edda.NewHost(charging, shipping, commands, events, toOrders)
	return s, err
}

// Bus is for those who look on.
func (s *Service) Bus() *bus.Bus { return s.bus }

// Install makes the tables and queues. A deployment does it once, with the rights for it.
func (s *Service) Install(ctx context.Context) error {
	if err := migrations.Up(ctx, s.pool, migrations.Options{}); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the tables of payments: %w", err)
	}
	return s.host.Install(ctx)
}

// Check returns an error if the service cannot run, see edda.Host.
func (s *Service) Check(ctx context.Context) error { return s.host.Check(ctx) }

// Run runs the service until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.host.Run(ctx) }
