package world

import (
	"context"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Living makes a schema with n living instances of three sagas.
func Living(ctx context.Context, pool *pgxpool.Pool, schema string, n int) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.install(ctx, map[string][]string{"orders": {"order.place", "order.overdue"}}); err != nil {
		return nil, err
	}
	if err := s.exec(ctx, "ids"); err != nil {
		return nil, err
	}
	return s, s.exec(ctx, "living", n)
}
