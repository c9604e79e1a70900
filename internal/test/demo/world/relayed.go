package world

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type sailed struct{ Order string }

func (sailed) Kind() string { return "order.sailed" }

// Relayed makes a schema with one order, which went through four endpoints and over the border: a relay has published
// the event to an external system, and keeps a copy.
func Relayed(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.Bodies})
	if err != nil {
		return nil, err
	}
	s.Sagas = []*saga.Definition{Orders}
	if err := s.sail(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) sail(ctx context.Context) error {
	relay, err := bus.NewRelay(s.Bus, "shop.events", outbox.RelayOptions{Keep: 24 * time.Hour},
		func(_ context.Context, all []*saga.Delivery) []error { return make([]error, len(all)) }, sailed{}.Kind())
	if err != nil {
		return err
	}
	shipping, err := bus.NewEndpoint(s.Bus, "shipping", bus.EndpointOptions{Concurrency: 1},
		bus.Handle(func(ctx *bus.Context, m ship) error {
			ctx.Reply(shipped(m))
			ctx.Publish(sailed(m))
			return nil
		}))
	if err != nil {
		return err
	}
	err = s.install(ctx, map[string][]string{"mails": {mailed{}.Kind()}, "erp": {export{}.Kind()},
		"stock": {reserve{}.Kind()}})
	if err != nil {
		return err
	}
	for _, e := range []endpoint{relay, shipping} {
		if err := s.start(ctx, e); err != nil {
			return err
		}
	}
	if err := errors.Join(s.play(ctx, "orders"), s.play(ctx, "payments")); err != nil {
		return err
	}
	sent, err := s.Bus.Send(ctx, place{Order: key(1), Cents: 27182801, Customer: "customer 1"})
	if err != nil {
		return err
	}
	s.First = sent.ID
	err = s.until(ctx, "the order is paid", func(l look) bool { return l.versions[key(1)] == 2 })
	if err != nil {
		return err
	}
	if err := s.play(ctx, "stock"); err != nil {
		return err
	}
	return s.until(ctx, "the order is shipped, and the news are out", func(l look) bool {
		return l.ready["erp"] == 1 && l.ready["shop.events"] == 0 && len(l.versions) == 0
	})
}

// Days makes the history three days older, and deletes the pages that are deleted by then.
func (s *Stage) Days(ctx context.Context) error { return s.exec(ctx, "three days") }

// Idle makes three hours pass between the first page of the history and the others.
func (s *Stage) Idle(ctx context.Context) error { return s.exec(ctx, "idle") }
