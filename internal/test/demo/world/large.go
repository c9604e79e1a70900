package world

import (
	"context"
	"errors"
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	grow struct {
		Archive string
		Bytes   int
	}
	archive struct {
		Number int
		Pages  string
	}
)

func (grow) Kind() string { return "archive.grow" }

// Archives is a saga whose state may be as large as a state can be.
var Archives = saga.Define("archive", saga.Options{},
	saga.StartedBy(func(m grow) string { return m.Archive }, func(a *archive, _ *saga.Context, m grow) error {
		a.Number++
		a.Pages = strings.Repeat("x", m.Bytes)
		return nil
	}),
)

// Large is a schema with one instance, whose state has nearly 1 MiB.
func Large(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.Bodies})
	if err != nil {
		return nil, err
	}
	s.Sagas = []*saga.Definition{Archives}
	e, err := bus.NewEndpoint(s.Bus, "archives", bus.EndpointOptions{Concurrency: 1}, bus.Saga(Archives))
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, e); err != nil {
		return nil, err
	}
	for n, size := range []int{100, 1<<20 - 100} {
		sent, err := s.Bus.Send(ctx, grow{Archive: "books", Bytes: size})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.First = sent.ID
		is := func(l look) bool { return l.versions["books"] == int64(n+1) }
		if err := s.until(ctx, "the archive has grown", is); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}
