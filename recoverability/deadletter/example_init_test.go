package deadletter_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The examples share a Postgres, and an endpoint whose first two messages became dead letters.

var check = pgtest.Must

type ChargeCard struct {
	Order string `json:"order"`
}

func (ChargeCard) Kind() string { return "card.charge" }

func openBank() (ctx context.Context, pool *pgxpool.Pool, o *operate.Operator, charged chan string, end func()) {
	ctx, pool, drop := pgtest.Example()
	dead, charged := make(chan struct{}, 2), make(chan string, 2)
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler), Events: func(e event.Event) {
		if _, ok := e.(event.DeadLettered); ok {
			dead <- struct{}{}
		}
	}})
	check(err)
	var up atomic.Bool
	charge := func(_ *bus.Context, m ChargeCard) error {
		if !up.Load() {
			return saga.Permanent(errors.New("the bank is down"))
		}
		charged <- m.Order
		return nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{Concurrency: 1}, bus.Handle(charge))
	check(err)
	stop := pgtest.Start(ctx, bank)
	for _, order := range []string{"7", "8"} {
		_, err = b.Send(ctx, ChargeCard{Order: order})
		check(err)
		<-dead
	}
	up.Store(true)
	o, err = operate.New(pool, operate.Options{})
	check(err)
	return ctx, pool, o, charged, func() {
		stop()
		drop()
	}
}
