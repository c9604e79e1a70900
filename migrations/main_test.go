package migrations_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

// site is a migrated schema with three queues: orders consumes order.place, mail and audit both consume order.paid,
// and no queue consumes order.lost.
type site struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
}

func newSite(t *testing.T, suffix string) *site {
	t.Helper()
	schema, err := pg.ParseSchema(pgdev.Schema(t) + suffix)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, pool: pgdev.Pool(t), schema: schema}
	t.Cleanup(func() {
		drop := schema.Render("DROP SCHEMA IF EXISTS :schema CASCADE")
		if _, err := s.pool.Exec(context.WithoutCancel(t.Context()), drop); err != nil {
			t.Error(err)
		}
	})
	if err := migrations.Up(t.Context(), s.pool, migrations.Options{Schema: schema.Name()}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct{ endpoint, kind string }{
		{"audit", "order.paid"}, {"mail", "order.paid"}, {"orders", "order.place"},
	} {
		s.exec("INSERT INTO :schema.subscription (kind, queue) SELECT $2, :schema.create_queue($1)", e.endpoint, e.kind)
	}
	return s
}

func (s *site) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), s.schema.Render(sql), args...); err != nil {
		s.Fatalf("%s\n%v", sql, err)
	}
}

// one reads a single value.
func one[T any](s *site, sql string, args ...any) (value T) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), s.schema.Render(sql), args...).Scan(&value); err != nil {
		s.Fatalf("%s\n%v", sql, err)
	}
	return value
}

// table returns the quoted name of an endpoint's queue.
func (s *site) table(endpoint string) string {
	s.Helper()
	return one[string](s, "SELECT format('%I.queue_%s', :'schema', id) FROM :schema.queue WHERE endpoint = $1",
		endpoint)
}

func (s *site) count(endpoint string) int {
	s.Helper()
	return one[int](s, "SELECT count(*) FROM "+s.table(endpoint))
}
