package dispatch

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store changes manifests as a program or an operator does: do is "put", "declare" or "trigger", for the manifests
// with these names. TestMain sets it, because package scheduler imports this package.
var Store func(ctx context.Context, pool *pgxpool.Pool, schema pg.Schema, do string, names ...string) error

func (w *loopsWorld) store(do string, names ...string) {
	w.t.Helper()
	if err := Store(w.t.Context(), w.pool, w.schema, do, names...); err != nil {
		w.t.Fatal(err)
	}
}
