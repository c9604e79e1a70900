package world

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	visit struct{ Guest string }
	guest struct{ Visits int }
)

func (visit) Kind() string { return "guest.visit" }

// Guests is a saga that counts.
var Guests = saga.Define("guest", saga.Options{},
	saga.StartedBy(func(m visit) string { return m.Guest }, func(g *guest, _ *saga.Context, _ visit) error {
		g.Visits++
		return nil
	}),
)

// Partitioned makes a schema with an endpoint of four partitions. One partition is paused.
func Partitioned(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.States})
	if err != nil {
		return nil, err
	}
	s.Sagas = []*saga.Definition{Guests}
	e, err := bus.NewPartitioned(s.Bus, "guests", bus.PartitionOptions{Partitions: 4}, bus.Saga(Guests))
	if err != nil {
		return nil, err
	}
	// An endpoint that runs may take a message before it hears of a pause.
	if err := e.Install(ctx); err != nil {
		return nil, err
	}
	if err := s.Op.Endpoints().Pause(ctx, "guests.p2", "its shelf is being repaired"); err != nil {
		return nil, err
	}
	if err := s.start(ctx, e); err != nil {
		return nil, err
	}
	if err := s.visits(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// visits sends forty guests. The guests of partition 2 wait, because it is paused.
func (s *Stage) visits(ctx context.Context) error {
	waiting := int64(0)
	for n := 1; n <= 40; n++ {
		name := fmt.Sprintf("guest-%02d", n)
		if bus.PartitionOf(name, 4) == 2 {
			waiting++
		}
		sent, err := s.Bus.Send(ctx, visit{Guest: name})
		if err != nil {
			return err
		}
		s.First = sent.ID
	}
	return s.until(ctx, "three partitions have done their work", func(l look) bool {
		return l.ready["guests"] == 0 && l.ready["guests.p2"] == waiting && int64(len(l.versions)) == 40-waiting
	})
}
