package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shop is the whole landscape: a broker, and two services with a Postgres server each.
type Shop struct {
	Broker           *cluster.Cluster
	Orders, Payments *Site
	Counter          *orders.Service // where orders are placed
}

// Options of a Shop.
type Options struct {
	Nodes     int // of the broker
	PayWithin time.Duration
	Configure func(*bus.Options) // changes the options of the buses in this process; nil is nothing
}

// Site is one service, and its database.
type Site struct {
	Service
	Server  *pgdev.Server
	Process Process // what a process of the service is told
	pool    *pgxpool.Pool
	closing func()
}

// Open starts the servers and the broker, and makes tables, queues and streams. The services run in no process yet.
func Open(ctx context.Context, o Options) (_ *Shop, err error) {
	l := &Shop{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.Broker, err = cluster.Start(ctx, cluster.Options{Nodes: o.Nodes}); err != nil {
		return nil, err
	}
	if err := provision(ctx, l.Broker); err != nil {
		return nil, err
	}
	p := Process{Service: ordersService, Broker: l.Broker.URL(), PayWithin: o.PayWithin,
		Configure: o.Configure}
	if l.Orders, err = openSite(ctx, p); err != nil {
		return nil, err
	}
	p.Service = paymentsService
	if l.Payments, err = openSite(ctx, p); err != nil {
		return nil, err
	}
	l.Counter = l.Orders.Service.(*orders.Service)
	return l, nil
}

// openSite starts a Postgres that waits for its disk, and puts the service together in this process.
func openSite(ctx context.Context, p Process) (*Site, error) {
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Private: true}) // two of them, and both may be crashed
	if err != nil {
		return nil, err
	}
	p.DSN, p.Name = server.DSN()+"&pool_max_conns=8", p.Service
	s := &Site{Server: server, Process: p, closing: func() {}}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", p.Service, err), s.Close())
	}
	return s, nil
}

func (s *Site) open(ctx context.Context) (err error) {
	if s.pool, err = lab.OpenPool(ctx, s.Process.DSN, s.Process.Name, ""); err != nil {
		return err
	}
	s.closing = s.pool.Close
	var closing func()
	if s.Service, closing, err = s.Process.open(s.pool); err != nil {
		return err
	}
	s.closing = func() {
		closing()
		s.pool.Close()
	}
	return s.Install(ctx)
}

// Close stops the server of the site.
func (s *Site) Close() error {
	s.closing()
	return s.Server.Stop()
}

// Close takes everything away.
func (l *Shop) Close() (err error) {
	for _, s := range []*Site{l.Orders, l.Payments} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if l.Broker != nil {
		err = errors.Join(err, l.Broker.Stop())
	}
	return err
}
