package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Shop is a schema with a shop in it, whose endpoints run until Close.
type Shop struct {
	Bus    *bus.Bus
	Op     *operate.Operator
	Labels saga.ID // the message from which the labels of a batch follow
	First  saga.ID // the message that placed the first order

	stops map[string]func() error
}

// Seed tells the story of the shop. The schema has been migrated.
func Seed(ctx context.Context, pool *pgxpool.Pool, schema string) (s *Shop, err error) {
	s = &Shop{stops: map[string]func() error{}}
	s.Bus, err = bus.New(pool, bus.Options{
		Schema: schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
		History: history.Options{Level: history.Bodies},
	})
	if err != nil {
		return nil, err
	}
	if s.Op, err = operate.New(pool, operate.Options{Schema: schema}); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cast())) {
		if err := s.start(ctx, name); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.tell(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start installs an endpoint and runs it.
func (s *Shop) start(ctx context.Context, name string) error {
	e, err := cast()[name](s.Bus)
	if err == nil {
		err = e.Install(ctx)
	}
	if err != nil {
		return err
	}
	group := run.NewGroup(context.WithoutCancel(ctx))
	group.Go(e.Run)
	s.stops[name] = func() error {
		group.Stop()
		return group.Wait()
	}
	return nil
}

func (s *Shop) stop(name string) error {
	stop := s.stops[name]
	delete(s.stops, name)
	return stop()
}

// Close ends the endpoints.
func (s *Shop) Close() (err error) {
	for name := range maps.Clone(s.stops) {
		err = errors.Join(err, s.stop(name))
	}
	return err
}

// tell is the story: a good day, and then the bank is down and nobody ships.
func (s *Shop) tell(ctx context.Context) error {
	for n := 1; n <= 9; n++ {
		if err := s.place(ctx, n); err != nil {
			return err
		}
	}
	err := s.until(ctx, "nine orders are shipped", func(q queues) bool { return q["orders"] == [2]int64{} })
	if err != nil {
		return err
	}
	if err := s.place(ctx, 3); err != nil { // again: a second life
		return err
	}
	sent, err := s.Bus.Send(ctx, Print{Batch: 1, Labels: labels})
	if err != nil {
		return err
	}
	s.Labels = sent.ID
	err = s.until(ctx, "labels are printed", func(q queues) bool {
		return q["labels"] == [2]int64{} && q["orders"] == [2]int64{}
	})
	if err != nil {
		return err
	}
	return s.trouble(ctx)
}

// trouble is what an operator has to see.
func (s *Shop) trouble(ctx context.Context) error {
	if err := s.stop("shipping"); err != nil {
		return err
	}
	if err := s.place(ctx, 10); err != nil { // is paid, and not shipped
		return err
	}
	err := s.until(ctx, "order 10 waits for its parcel", func(q queues) bool { return q["shipping"][0] == 1 })
	if err != nil {
		return err
	}
	if err := s.Op.Endpoints().Pause(ctx, "payments", "the bank is down until 14:00"); err != nil {
		return err
	}
	for n := 11; n <= 16; n++ {
		if err := s.place(ctx, n); err != nil {
			return err
		}
	}
	err = s.until(ctx, "six orders wait for the bank", func(q queues) bool {
		return q["payments"][0] == 6 && q["stock"] == [2]int64{} && q["orders"] == [2]int64{0, 6}
	})
	if err != nil {
		return err
	}
	for _, m := range []saga.Message{
		Check{Order: key(12)}, Note{Order: key(12), Text: "ring twice"},
		Note{Order: key(12), Text: "<script>alert(1)</script>"}, Note{Order: key(12), Text: "leave it\u202e next door"},
	} {
		if _, err := s.Bus.Send(ctx, m); err != nil {
			return err
		}
	}
	return s.until(ctx, "notes are taken", func(q queues) bool { return q["orders"] == [2]int64{0, 6} })
}

func key(n int) string { return fmt.Sprintf("2026-%04d", n) }

func (s *Shop) place(ctx context.Context, n int) error {
	sent, err := s.Bus.Send(ctx, Place{Order: key(n), Cents: 1990 + 10*n, Customer: fmt.Sprintf("customer %d", n)})
	if n == 1 {
		s.First = sent.ID
	}
	return err
}

// queues are how many messages are ready, and due later, by endpoint.
type queues map[string][2]int64

// until waits until the queues are as the story wants them.
func (s *Shop) until(ctx context.Context, what string, ok func(queues) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("waited for: %s", what))
	defer cancel()
	for {
		infos, err := s.Op.Queues().List(ctx)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		q := queues{}
		for _, i := range infos {
			q[i.Endpoint] = [2]int64{i.Ready, i.Delayed}
		}
		if ok(q) {
			return nil
		}
		if run.Sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%w, but the queues are %v", context.Cause(ctx), q)
		}
	}
}
