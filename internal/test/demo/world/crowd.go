package world

import (
	"context"
	"errors"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Crowd makes a schema with one conversation of 1,001 messages: a batch, and its 1,000 labels. Some labels die.
func Crowd(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.Steps})
	if err != nil {
		return nil, err
	}
	e, err := cast()["labels"](s.Bus)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, e); err != nil {
		return nil, err
	}
	sent, err := s.Bus.Send(ctx, printBatch{Batch: 1, Labels: 1000})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.First, s.Labels = sent.ID, sent.ID
	err = s.until(ctx, "the labels are printed", func(l look) bool { return l.letters == 50 && l.ready["labels"] == 0 })
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
