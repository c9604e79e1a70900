package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/shop"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
)

const (
	payWithin  = 4 * time.Second // short, so that timeouts fire while servers are away
	shopLease  = 4 * time.Second // longer than the leases of the services' relays
	restWithin = 2 * time.Minute
)

// serve is the life of a worker process of the shop.
func serve(ctx context.Context, w *lab.Worker) error {
	p := shop.Process{}
	if err := w.Read(&p); err != nil {
		return err
	}
	p.Name, p.DSN = w.Name, w.DSN
	return p.Serve(ctx)
}

// openShop runs worker processes of both services, strikes whatever there is while orders are placed, lets everything
// come to rest, and judges. The lab's own Postgres has the ledger alone, and is not struck.
func openShop(ctx context.Context, s lab.Settings) (err error) {
	trade, err := shop.Open(ctx, shop.Options{Nodes: 3, PayWithin: payWithin})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trade.Close()) }()
	site := func(place int) *shop.Site { return []*shop.Site{trade.Orders, trade.Payments}[place%2] }
	buyers := &shop.Buyers{Counter: trade.Counter, Random: rand.New(rand.NewPCG(s.Seed, 2)), Rate: flags.orders}
	return s.Try(ctx, lab.Trial{
		DSN:  func(place int) string { return site(place).Process.DSN },
		Task: func(place int) any { return site(place).Process },
		Break: func(ctx context.Context, l *lab.Lab) error {
			storm := &storm{Lab: l, nodes: trade.Broker, lease: shopLease, stream: contract.Orders,
				servers: []*pgdev.Server{trade.Orders.Server, trade.Payments.Server}}
			selling := run.NewGroup(ctx)
			selling.Go(buyers.Run)
			selling.Go(func(ctx context.Context) error {
				defer selling.Stop()
				return storm.rage(ctx)
			})
			err := selling.Wait()
			if err == nil {
				l.Fact("drained", trade.Drain(ctx, restWithin))
			}
			return err
		},
		Judge: func(ctx context.Context, l *lab.Lab) error {
			v, err := trade.Judge(ctx)
			l.Fact("orders", v.Orders)
			l.Fact("paid", v.Paid)
			l.Fact("declined", v.Declined)
			l.Fact("turned_away", buyers.Turned.Load())
			l.Expect(v.Orders > 0, "no order", "no order was placed")
			for _, f := range v.Faults {
				l.Violate(f.Rule, "", "%s", f.What)
			}
			return err
		}})
}
