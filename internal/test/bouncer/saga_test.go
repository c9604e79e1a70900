//go:build bouncer

package bouncer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type place struct{ Order string }
type bump struct {
	Order string
	N     int
}
type pay struct{ Order string }
type paid struct{ Order string }
type overdue struct{}
type shipped struct {
	Order string
	Bumps int
}

func (place) Kind() string   { return "order.place" }
func (bump) Kind() string    { return "order.bump" }
func (pay) Kind() string     { return "card.pay" }
func (paid) Kind() string    { return "card.paid" }
func (overdue) Kind() string { return "order.overdue" }
func (shipped) Kind() string { return "order.shipped" }

// order is over when it is paid, was bumped so often as it should, and its time has come.
type order struct {
	Bumps      int
	Paid, Late bool
}

const bumps = 5

func (o *order) place(ctx *saga.Context, _ place) error {
	ctx.Send(pay{Order: ctx.Key()})
	ctx.Timeout(100*time.Millisecond, overdue{})
	return o.end(ctx)
}

func (o *order) bump(ctx *saga.Context, _ bump) error       { o.Bumps++; return o.end(ctx) }
func (o *order) paid(ctx *saga.Context, _ paid) error       { o.Paid = true; return o.end(ctx) }
func (o *order) overdue(ctx *saga.Context, _ overdue) error { o.Late = true; return o.end(ctx) }

func (o *order) end(ctx *saga.Context) error {
	if o.Paid && o.Late && o.Bumps == bumps {
		ctx.Publish(shipped{Order: ctx.Key(), Bumps: o.Bumps})
		ctx.Complete()
	}
	return nil
}

func orders(store saga.Store) *saga.Definition {
	return saga.Define("order", saga.Options{Store: store},
		saga.StartedBy(func(m place) string { return m.Order }, (*order).place),
		saga.StartedBy(func(m bump) string { return m.Order }, (*order).bump),
		saga.OnReply((*order).paid),
		saga.OnTimeout((*order).overdue),
	)
}

// startShop runs the shop on a bus: the orders, the cards that they are paid with, and whoever ships.
func (w *world) startShop(b *bus.Bus, store saga.Store) {
	w.t.Helper()
	w.startOn(b, "orders", bus.EndpointOptions{}, bus.Saga(orders(store)))
	w.startOn(b, "cards", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m pay) error {
		ctx.Reply(paid(m))
		return w.effect(ctx, tx, "paid "+m.Order, 1)
	}))
	w.startOn(b, "shipping", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m shipped) error {
		return w.effect(ctx, tx, "shipped "+m.Order, m.Bumps)
	}))
}

// Two buses work on the same few orders, so that saves conflict; each order is paid once and shipped once, with every
// bump.
func TestSagasOfBothStoresInEachModeOfPgx(t *testing.T) {
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe}
	if knowsStatements(pgbouncer(t)) {
		modes = append(modes, pgx.QueryExecModeCacheStatement)
	}
	for _, mode := range modes {
		for name, store := range map[string]saga.Store{"pessimistic": saga.Pessimistic, "optimistic": saga.Optimistic} {
			t.Run(fmt.Sprint(mode, " ", name), func(t *testing.T) {
				w := newWorldIn(t, mode)
				w.startShop(w.bus, store)
				w.startShop(w.newBus(bus.Options{}), store)
				const n = 40
				for i := range n {
					id := fmt.Sprint(i)
					w.send(place{Order: id})
					for b := range bumps {
						w.send(bump{Order: id, N: b})
					}
				}
				w.await("all orders shipped", fmt.Sprint(n), "SELECT count(*)::text FROM :schema.effect WHERE key "+
					"LIKE 'shipped%' AND n = $1::int", bumps)
				w.awaitEffects(2 * n)
				w.await("no instance left", "0", "SELECT count(*)::text FROM :schema.saga")
			})
		}
	}
}
