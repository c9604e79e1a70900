package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shelf is a schema of one test with a Store on it.
type shelf struct {
	*testing.T
	*Store
	pool   *pgxpool.Pool
	schema pg.Schema
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store, err := NewStore(pool, StoreOptions{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{t, store, pool, schema}
}

func (s *shelf) ctx() context.Context { return s.Context() }

func (s *shelf) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) exec(sql string, args ...any) {
	s.Helper()
	pgtest.Exec(s, s.pool, s.schema.Render(sql), args...)
}

// ask reads one value as text, "" for NULL.
func (s *shelf) ask(sql string, args ...any) (text string) {
	s.Helper()
	var got *string
	if err := s.pool.QueryRow(s.ctx(), s.schema.Render("SELECT ("+sql+")::text"), args...).Scan(&got); err != nil {
		s.Fatalf("%v\n%s", err, sql)
	}
	if got != nil {
		text = *got
	}
	return text
}

func (s *shelf) says(what, want, sql string, args ...any) {
	s.Helper()
	if got := s.ask(sql, args...); got != want {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (s *shelf) sync(owner string, manifests ...Manifest) Changes {
	s.Helper()
	changes, err := s.Sync(s.ctx(), owner, nil, manifests)
	s.must(err)
	return changes
}

type settle struct {
	Day string `json:"day,omitempty"`
}

func (settle) Kind() string { return "account.settle" }

func every(name string) Manifest {
	return Manifest{Name: name, When: Every(time.Hour), Message: settle{}}
}

// refuses fails the test unless err contains all parts.
func refuses(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want it to say %q", err, part)
		}
	}
}

func TestStoreStatements(t *testing.T) {
	s := newShelf(t)
	pgtest.Statements(t, s.pool, s.schema, "store.sql")
}

// onPool makes the store use other connections from now on.
func (s *shelf) onPool(config *pgxpool.Config) error {
	pool, err := pgxpool.NewWithConfig(s.ctx(), config)
	if err != nil {
		return err
	}
	s.Cleanup(pool.Close)
	store, err := NewStore(pool, StoreOptions{Schema: s.schema.Name()})
	s.Store = store
	return err
}
