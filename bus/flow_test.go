package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

func replaceAll(s, old, now string) string { return strings.ReplaceAll(s, old, now) }

type place struct {
	Order string
	Total int
}
type pay struct {
	Order string
	Total int
}
type paid struct{ Order string }
type shipped struct{ Order string }
type overdue struct{}
type bump struct{ Order string }

func (place) Kind() string   { return "order.place" }
func (pay) Kind() string     { return "card.pay" }
func (paid) Kind() string    { return "card.paid" }
func (shipped) Kind() string { return "order.shipped" }
func (overdue) Kind() string { return "order.overdue" }
func (bump) Kind() string    { return "order.bump" }

type order struct {
	Total int
	Bumps int
	Paid  bool
}

func (o *order) place(ctx *saga.Context, m place) error {
	o.Total = m.Total
	ctx.Send(pay{Order: ctx.Key(), Total: m.Total})
	ctx.Timeout(time.Hour, overdue{}, saga.Named("payment"))
	return nil
}

func (o *order) paid(ctx *saga.Context, _ paid) error {
	o.Paid = true
	ctx.CancelTimeout("payment")
	ctx.Publish(shipped{Order: ctx.Key()})
	ctx.Complete()
	return nil
}

func (o *order) overdue(ctx *saga.Context, _ overdue) error { ctx.Complete(); return nil }
func (o *order) bump(_ *saga.Context, _ bump) error         { o.Bumps++; return nil }

func orders(store saga.Store) *saga.Definition {
	return saga.Define("order", saga.Options{Store: store},
		saga.StartedBy(func(m place) string { return m.Order }, (*order).place),
		saga.OnReply((*order).paid),
		saga.Handles(func(m bump) string { return m.Order }, (*order).bump),
		saga.OnTimeout((*order).overdue),
	)
}

func bothStores(t *testing.T, test func(t *testing.T, store saga.Store)) {
	t.Parallel() // otherwise its two tests would run alone, before the parallel tests start
	t.Run("pessimistic", func(t *testing.T) { test(t, saga.Pessimistic) })
	t.Run("optimistic", func(t *testing.T) { test(t, saga.Optimistic) })
}

func TestAnOrderFromPlacedToShipped(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.exec(`CREATE TABLE edda.payment (id text PRIMARY KEY, message text); GRANT ALL ON edda.payment TO PUBLIC`)
		pays := func(ctx *bus.Context, tx pgx.Tx, m pay) error {
			if _, err := tx.Exec(ctx, w.sql(`INSERT INTO edda.payment VALUES ($1, $2)`), m.Order,
				ctx.Info().ID.String()); err != nil {
				return err
			}
			ctx.Reply(paid{Order: m.Order})
			return nil
		}
		got := make(chan string, 10)
		w.start("shipping", bus.EndpointOptions{}, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m shipped) error {
			got <- m.Order
			return nil
		}))
		w.start("cards", bus.EndpointOptions{}, bus.HandleTx(pays))
		w.start("orders", bus.EndpointOptions{}, bus.Saga(orders(store)))
		w.send(place{Order: "7", Total: 100})
		select {
		case id := <-got:
			if id != "7" {
				t.Errorf("shipped %q", id)
			}
		case <-time.After(pgdev.Patience(10 * time.Second)):
			t.Fatal("nothing was shipped", w.story())
		}
		w.untilEmpty("shipping")
		w.untilEmpty("orders")
		if n := w.count(`SELECT count(*) FROM edda.saga`); n != 0 {
			t.Errorf("%d instances are left", n)
		}
		if n := w.count(`SELECT count(*) FROM edda.payment`); n != 1 {
			t.Errorf("paid %d times", n)
		}
	})
}
