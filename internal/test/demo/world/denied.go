package world

import (
	"context"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Denied makes a schema that a role may read except for the dead letters.
func Denied(ctx context.Context, pool *pgxpool.Pool, schema, role string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{})
	if err != nil {
		return nil, err
	}
	name, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, name.RenderWith(pg.Parse(statements).Get("revoke"), ":role",
		pgx.Identifier{role}.Sanitize()))
	return s, err
}
