package world

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Paused makes a schema with everything paused by an operator: endpoints with messages, manifests and a group.
func Paused(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.States})
	if err != nil {
		return nil, err
	}
	ctx = operate.WithActor(ctx, operate.Actor{Name: "ann@shop.example", From: "desk"})
	return s, errors.Join(s.pauseEndpoints(ctx), s.pauseManifests(ctx))
}

func (s *Stage) pauseEndpoints(ctx context.Context) error {
	kinds := map[string][]saga.Message{
		"payments": {charge{Order: key(1)}, charge{Order: key(2)}}, "stock": {reserve{Order: key(1)}},
		"shipping": {ship{Order: key(1)}}, "mails": {mailed{Order: key(1)}},
	}
	for name, messages := range kinds {
		if err := s.Op.Queues().Install(ctx, name, messages[0].Kind()); err != nil {
			return err
		}
		for _, m := range messages {
			sent, err := s.Bus.Send(ctx, m)
			if err != nil {
				return err
			}
			s.First = sent.ID
		}
		if err := s.Op.Endpoints().Pause(ctx, name, "the warehouse moves to another hall"); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) pauseManifests(ctx context.Context) error {
	if err := s.Op.Queues().Install(ctx, "labels", printBatch{}.Kind()); err != nil {
		return err
	}
	if err := s.Op.Endpoints().Pause(ctx, "labels", "the warehouse moves to another hall"); err != nil {
		return err
	}
	store, err := scheduler.NewStore(s.pool, scheduler.StoreOptions{Schema: s.schema})
	if err != nil {
		return err
	}
	if err := store.SetGroup(ctx, scheduler.Group{Name: "hall", Max: 2}); err != nil {
		return err
	}
	for _, m := range []scheduler.Manifest{
		{Name: "night/settle", When: scheduler.Cron("0 3 * * *", "Europe/Berlin")},
		{Name: "hall/count", When: scheduler.Every(time.Hour), Group: "hall"},
	} {
		m.Message = printBatch{Batch: 1, Labels: 1}
		if err := store.Put(ctx, m); err != nil {
			return err
		}
		if err := store.Pause(ctx, m.Name, "the warehouse moves to another hall"); err != nil {
			return err
		}
	}
	return store.PauseGroup(ctx, "hall", "there is no hall today")
}
