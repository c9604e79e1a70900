package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lab is the whole landscape: a broker, and two services with a Postgres server each.
type lab struct {
	broker           *cluster.Cluster
	orders, payments *site
	shop             *orders.Service // where orders are placed
}

// site is one service, and its database.
type site struct {
	service
	server  *pgdev.Server
	pool    *pgxpool.Pool
	worker  worker // what a process of the service is told
	closing func()
}

// labOptions say how large it is.
type labOptions struct {
	nodes     int // of the broker
	payWithin time.Duration
	observer  observer // nil: nobody looks on
}

// openLab starts the servers and the broker, and makes tables, queues and streams.
func openLab(ctx context.Context, o labOptions) (_ *lab, err error) {
	l := &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.broker, err = cluster.Start(ctx, cluster.Options{Nodes: o.nodes}); err != nil {
		return nil, err
	}
	if err := provision(ctx, l.broker); err != nil {
		return nil, err
	}
	if l.orders, err = openSite(ctx, worker{Service: ordersService, Broker: l.broker.URL(), PayWithin: o.payWithin},
		o); err != nil {
		return nil, err
	}
	if l.payments, err = openSite(ctx, worker{Service: paymentsService, Broker: l.broker.URL()}, o); err != nil {
		return nil, err
	}
	l.shop = l.orders.service.(*orders.Service)
	return l, nil
}

// openSite starts a Postgres that waits for its disk, and puts the service together in this process.
func openSite(ctx context.Context, w worker, o labOptions) (*site, error) {
	// two of them, and both will be crashed
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Private: true})
	if err != nil {
		return nil, err
	}
	w.DSN, w.Name = server.DSN(), w.Service
	s := &site{server: server, worker: w, closing: func() {}}
	if err := s.open(ctx, o.observer); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", w.Service, err), s.close())
	}
	return s, nil
}

func (s *site) open(ctx context.Context, by observer) (err error) {
	if s.pool, err = connect(ctx, s.worker.DSN, s.worker.Name); err != nil {
		return err
	}
	s.closing = s.pool.Close
	var closing func()
	if s.service, closing, err = s.worker.open(s.pool, by); err != nil {
		return err
	}
	s.closing = func() {
		closing()
		s.pool.Close()
	}
	return s.Install(ctx)
}

func (s *site) close() error {
	s.closing()
	return s.server.Stop()
}

func (l *lab) close() (err error) {
	for _, s := range []*site{l.orders, l.payments} {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}
	if l.broker != nil {
		err = errors.Join(err, l.broker.Stop())
	}
	return err
}
