package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// mostCents is the highest amount that the bank accepts.
const mostCents = 50_000

// services do the work that takes a moment, in no transaction.
type services struct{ pause time.Duration }

func (s services) charge(ctx *bus.Context, m ChargeCard) error {
	if err := s.work(ctx); err != nil {
		return err
	}
	if m.Cents > mostCents {
		ctx.Reply(CardRefused{Order: m.Order})
		return nil
	}
	ctx.Reply(CardCharged{Order: m.Order})
	return nil
}

func (s services) pack(ctx *bus.Context, m PackOrder) error {
	if err := s.work(ctx); err != nil {
		return err
	}
	ctx.Reply(OrderPacked(m))
	return nil
}

// work takes about as long as pause.
func (s services) work(ctx context.Context) error {
	select {
	case <-time.After(s.pause*3/4 + rand.N(s.pause/2+1)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// book writes the outcome where it outlives the saga.
func book(ctx *bus.Context, tx pgx.Tx, m BookOutcome) error {
	if _, err := tx.Exec(ctx, `UPDATE shop_order SET outcome = $2 WHERE id = $1`, m.Order, m.Outcome); err != nil {
		return err
	}
	ctx.Reply(OutcomeBooked{Order: m.Order})
	return nil
}

// endpoints are the saga and its services.
func endpoints(b *bus.Bus, pause time.Duration) ([]edda.Runner, error) {
	s := services{pause: pause}
	all := []struct {
		name  string
		parts []bus.Part
	}{
		{"web.orders", []bus.Part{bus.Saga(orders)}},
		{"web.payments", []bus.Part{bus.Handle(s.charge)}},
		{"web.warehouse", []bus.Part{bus.Handle(s.pack)}},
		{"web.shop", []bus.Part{bus.HandleTx(book)}},
	}
	runners := make([]edda.Runner, len(all))
	for n, e := range all {
		endpoint, err := bus.NewEndpoint(b, e.name, bus.EndpointOptions{}, e.parts...)
		if err != nil {
			return nil, err
		}
		runners[n] = endpoint
	}
	return runners, nil
}
