package persistence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type account struct {
	Owner string
	Cents int
}

// shelf is the records of one collection, in a schema of its own.
type shelf struct {
	*testing.T
	pool     *pgxpool.Pool
	schema   pg.Schema
	accounts *persistence.Records[account]
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	accounts, err := persistence.NewRecords[account](schema.Name(), "account")
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{T: t, pool: pool, schema: schema, accounts: accounts}
}

func (s *shelf) is(r persistence.Record[account], err error) persistence.Record[account] {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *shelf) want(wanted, err error) {
	s.Helper()
	if !errors.Is(err, wanted) {
		s.Errorf("%v, want %v", err, wanted)
	}
}

func TestRecordIsWrittenUnderItsCondition(t *testing.T) {
	s := newShelf(t)
	ctx := t.Context()
	_, err := s.accounts.Get(ctx, s.pool, "7")
	s.want(persistence.ErrNoRecord, err)
	first := s.is(s.accounts.Create(ctx, s.pool, "7", account{"ada", 1}))
	_, err = s.accounts.Create(ctx, s.pool, "7", account{"bob", 2})
	s.want(persistence.ErrChanged, err)

	read := s.is(s.accounts.Get(ctx, s.pool, "7"))
	if diff := cmp.Diff(first, read); diff != "" || read.Changed.IsZero() {
		t.Errorf("(-written +read):\n%s", diff)
	}
	read.Value.Cents = 3
	second := s.is(s.accounts.Update(ctx, s.pool, read))
	_, err = s.accounts.Update(ctx, s.pool, read)
	s.want(persistence.ErrChanged, err)
	s.want(persistence.ErrChanged, s.accounts.Delete(ctx, s.pool, read))
	if second.Version <= first.Version || second.Value.Cents != 3 {
		t.Errorf("%+v after %+v", second, first)
	}

	third := s.is(s.accounts.Put(ctx, s.pool, "7", account{"eve", 4})) // whether or not there is a record
	s.want(persistence.ErrChanged, s.accounts.Delete(ctx, s.pool, second))
	s.want(nil, s.accounts.Delete(ctx, s.pool, third))
	_, err = s.accounts.Get(ctx, s.pool, "7")
	s.want(persistence.ErrNoRecord, err)
	s.is(s.accounts.Put(ctx, s.pool, "7", account{}))
}

// A record that was deleted and created again is a new record to readers of the first.
func TestRecordThatIsMadeAgainIsAnotherOne(t *testing.T) {
	s := newShelf(t)
	first := s.is(s.accounts.Create(t.Context(), s.pool, "7", account{"ada", 1}))
	s.want(nil, s.accounts.Delete(t.Context(), s.pool, first))
	s.is(s.accounts.Create(t.Context(), s.pool, "7", account{"bob", 2}))
	_, err := s.accounts.Update(t.Context(), s.pool, first)
	s.want(persistence.ErrChanged, err)
}

// Many writers of few records lose no update.
func TestChangeLosesNoUpdate(t *testing.T) {
	s := newShelf(t)
	var writers sync.WaitGroup
	const all, each = 8, 25
	for range all {
		writers.Go(func() {
			for n := range each {
				if _, err := s.accounts.Change(t.Context(), s.pool, []string{"a", "b"}[n%2], func(a *account) error {
					a.Cents++
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	a, b := s.is(s.accounts.Get(t.Context(), s.pool, "a")), s.is(s.accounts.Get(t.Context(), s.pool, "b"))
	if a.Value.Cents+b.Value.Cents != all*each {
		t.Errorf("%d and %d, want %d together", a.Value.Cents, b.Value.Cents, all*each)
	}
	no := errors.New("no")
	_, err := s.accounts.Change(t.Context(), s.pool, "a", func(a *account) error { a.Cents = 0; return no })
	s.want(no, err)
	if still := s.is(s.accounts.Get(t.Context(), s.pool, "a")); still != a {
		t.Errorf("%+v, want %+v", still, a)
	}
}

// pgx's simple protocol sends every parameter as text.
func TestRecordsInTheSimpleProtocol(t *testing.T) {
	s := newShelf(t)
	config := s.pool.Config()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on" // pgx refuses to quote otherwise
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.is(s.accounts.Put(t.Context(), pool, "7", account{"ada", 1}))
	changed := s.is(s.accounts.Change(t.Context(), pool, "7", func(a *account) error { a.Cents++; return nil }))
	if err := s.accounts.Delete(t.Context(), pool, changed); err != nil || changed.Value.Cents != 2 {
		t.Errorf("%+v, %v", changed, err)
	}
}

// Change ends with its context, however often it loses.
func TestChangeThatAlwaysLosesEndsWithItsContext(t *testing.T) {
	s := newShelf(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("shop closes")
	tries := 0
	_, err := s.accounts.Change(ctx, s.pool, "a", func(*account) error {
		s.is(s.accounts.Put(t.Context(), s.pool, "a", account{Cents: tries}))
		if tries++; tries == 3 {
			cancel(cause)
		}
		return nil
	})
	if tries != 3 || err == nil || !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// Records are written in a transaction with other statements.
func TestRecordsOfATransaction(t *testing.T) {
	s := newShelf(t)
	no := errors.New("no")
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		s.is(s.accounts.Put(t.Context(), tx, "7", account{"ada", 1}))
		s.is(s.accounts.Get(t.Context(), tx, "7"))
		return no
	})
	s.want(no, err)
	_, err = s.accounts.Get(t.Context(), s.pool, "7")
	s.want(persistence.ErrNoRecord, err)
}

func TestRecordsAreListedInTheOrderOfTheirKeys(t *testing.T) {
	s := newShelf(t)
	others, err := persistence.NewRecords[int](s.schema.Name(), "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := others.Put(t.Context(), s.pool, "b", 7); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"c", "a", "b", "ä"} {
		s.is(s.accounts.Put(t.Context(), s.pool, key, account{key, 1}))
	}
	var pages []string
	for after := ""; ; {
		page, err := s.accounts.List(t.Context(), s.pool, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		keys := ""
		for _, r := range page {
			keys += r.Key
		}
		pages, after = append(pages, keys), page[len(page)-1].Key
	}
	if got := strings.Join(pages, " "); got != "abc ä" {
		t.Errorf("pages %s", got)
	}
}

func TestRecordsRefuseWhatCannotBeStored(t *testing.T) {
	s := newShelf(t)
	texts, err := persistence.NewRecords[string](s.schema.Name(), "text")
	if err != nil {
		t.Fatal(err)
	}
	_, bad := persistence.NewRecords[int]("", "A")
	put := func(key, value string) error { _, err := texts.Put(t.Context(), s.pool, key, value); return err }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"empty key":  {put("", "x"), "a key of 0 bytes: want 1 to 512"},
		"long key":   {put(strings.Repeat("k", 513), "x"), "a key of 513 bytes"},
		"NUL":        {put("a\x00", "x"), "without NUL"},
		"not UTF-8":  {put("a", "\xff"), "not UTF-8"},
		"long value": {put("a", strings.Repeat("x", 1<<20)), "1048578 bytes, limit 1048576"},
		"collection": {bad, "beginning with"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, c.err, c.want)
		}
	}
	if err := put("a", `"}{ \u0000 `+"\u2028"); err != nil {
		t.Fatal(err)
	}
	if back, err := texts.Get(t.Context(), s.pool, "a"); err != nil || back.Value != `"}{ \u0000 `+"\u2028" {
		t.Errorf("%q, %v", back.Value, err)
	}
	if _, err := texts.Put(t.Context(), s.pool, "b", "x"); err != nil {
		t.Fatal(err)
	}
	numbers, err := persistence.NewRecords[int](s.schema.Name(), "text")
	if err != nil {
		t.Fatal(err)
	}
	_, err = numbers.Get(t.Context(), s.pool, "a")
	if err == nil || !strings.Contains(err.Error(), "decode its value") {
		t.Errorf("%v", err)
	}
	_, err = numbers.List(t.Context(), s.pool, "a", 0)
	if err == nil || !strings.Contains(err.Error(), "record b: decode its value") {
		t.Errorf("%v", err)
	}
}
