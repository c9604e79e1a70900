package world

import (
	"context"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Newer is a schema that a newer program has changed, so that this one must not use it.
func Newer(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{})
	if err != nil {
		return nil, err
	}
	return s, s.exec(ctx, "newer")
}
