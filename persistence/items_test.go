package persistence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// heap is the items of one collection, in a schema of its own.
type heap struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	texts  *persistence.Items[string]
}

func newHeap(t *testing.T) *heap {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	texts, err := persistence.NewItems[string](schema.Name(), "reply")
	if err != nil {
		t.Fatal(err)
	}
	return &heap{T: t, pool: pool, schema: schema, texts: texts}
}

// adds adds an item and fails the test if fresh is not as wanted.
func (h *heap) adds(db persistence.DB, of, key string, wanted bool) {
	h.Helper()
	fresh, err := h.texts.Add(h.Context(), db, of, key, "of "+key)
	if err != nil || fresh != wanted {
		h.Errorf("add %s: fresh %t, %v; want %t", key, fresh, err, wanted)
	}
}

func (h *heap) counts(db persistence.DB, of string, wanted int) {
	h.Helper()
	if n, err := h.texts.Count(h.Context(), db, of); err != nil || n != wanted {
		h.Errorf("%d items of %s, %v; want %d", n, of, err, wanted)
	}
}

// all reads the items.
func (h *heap) all(db persistence.DB, of string) (found []persistence.Item[string]) {
	h.Helper()
	for item, err := range h.texts.All(h.Context(), db, of) {
		if err != nil {
			h.Fatal(err)
		}
		found = append(found, item)
	}
	return found
}

func (h *heap) begin(level pgx.TxIsoLevel) pgx.Tx {
	h.Helper()
	tx, err := h.pool.BeginTx(h.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(h.Context())) })
	return tx
}

func (h *heap) commit(tx pgx.Tx) {
	h.Helper()
	if err := tx.Commit(h.Context()); err != nil {
		h.Fatal(err)
	}
}

func (h *heap) fails(code string, err error) {
	h.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != code {
		h.Errorf("%v, want the error %s of Postgres", err, code)
	}
}

func TestItemIsAddedOnce(t *testing.T) {
	h := newHeap(t)
	others, err := persistence.NewItems[int](h.schema.Name(), "other")
	if err != nil {
		t.Fatal(err)
	}
	h.adds(h.pool, "7", "a", true)
	h.adds(h.pool, "8", "a", true)
	if fresh, err := others.Add(t.Context(), h.pool, "7", "a", 1); !fresh || err != nil {
		t.Errorf("%t, %v", fresh, err)
	}
	if fresh, err := h.texts.Add(t.Context(), h.pool, "7", "a", "another"); fresh || err != nil {
		t.Errorf("the same key again: fresh %t, %v", fresh, err)
	}
	h.adds(h.pool, "7", "b", true)
	h.counts(h.pool, "7", 2)
	if found := h.all(h.pool, "7"); len(found) != 2 || found[0].Key != "a" || found[0].Value != "of a" ||
		found[1].Key != "b" || found[0].Number >= found[1].Number || found[0].Added.IsZero() {
		t.Errorf("%+v", found)
	}
	if n, err := h.texts.Clear(t.Context(), h.pool, "7"); n != 2 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
	h.counts(h.pool, "7", 0)
	h.counts(h.pool, "8", 1)
	if n, err := others.Count(t.Context(), h.pool, "7"); n != 1 || err != nil {
		t.Errorf("the other collection has %d, %v", n, err)
	}
	h.adds(h.pool, "7", "a", true)
}

// reader counts the statements that read rows.
type reader struct {
	persistence.DB
	asked int
}

func (r *reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.asked++
	return r.DB.Query(ctx, sql, args...)
}

// Keys are unordered, some exist already, some come twice: items are read in the order of addition, over three pages.
func TestItemsAreReadInTheOrderOfAddition(t *testing.T) {
	h := newHeap(t)
	h.adds(h.pool, "7", "first", true)
	key := func(n int) string { return fmt.Sprint(n * 7919 % 10007) }
	want := []string{"first"}
	var items []persistence.Item[string]
	for n := range 2499 {
		want = append(want, key(n))
		items = append(items, persistence.Item[string]{Key: key(n), Value: "of " + key(n)})
		if n%500 == 7 {
			items = append(items, persistence.Item[string]{Key: "first"}, persistence.Item[string]{Key: key(n / 2)})
		}
	}
	if n, err := h.texts.AddAll(t.Context(), h.pool, "7", items...); n != 2499 || err != nil {
		t.Fatalf("%d were added, %v", n, err)
	}
	if n, err := h.texts.AddAll(t.Context(), h.pool, "7", items[:100]...); n != 0 || err != nil {
		t.Errorf("%d were added again, %v", n, err)
	}
	if n, err := h.texts.AddAll(t.Context(), h.pool, "7"); n != 0 || err != nil {
		t.Errorf("%d of none were added, %v", n, err)
	}
	h.counts(h.pool, "7", 2500)
	var got []string
	db := &reader{DB: h.pool}
	for _, item := range h.all(db, "7") {
		got = append(got, item.Key)
		if item.Value != "of "+item.Key {
			t.Fatalf("%s is %q", item.Key, item.Value)
		}
	}
	if !slices.Equal(got, want) || db.asked != 3 {
		t.Errorf("%d items in %d pages: %.200v\nwant %d in 3: %.200v", len(got), db.asked, got, len(want), want)
	}
	if n, err := h.texts.Clear(t.Context(), h.pool, "7"); n != 2500 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
}

// A page ends with the item that exceeds 4 MiB.
func TestPagesOfItemsAreBoundedByBytes(t *testing.T) {
	h := newHeap(t)
	large := strings.Repeat("x", 1<<20-2) // and two quotes
	for n := range 9 {
		if fresh, err := h.texts.Add(t.Context(), h.pool, "7", fmt.Sprint(n), large); !fresh || err != nil {
			t.Fatal(fresh, err)
		}
	}
	db := &reader{DB: h.pool}
	if found := h.all(db, "7"); len(found) != 9 || found[8].Value != large || db.asked != 3 {
		t.Errorf("%d items in %d pages, want 9 in 3", len(found), db.asked)
	}
}

// The connection is free for other statements between two items.
func TestAllLeavesItsTransactionFree(t *testing.T) {
	h := newHeap(t)
	tx := h.begin(pgx.ReadCommitted)
	h.adds(tx, "7", "a", true)
	h.adds(tx, "7", "b", true)
	for item, err := range h.texts.All(t.Context(), tx, "7") {
		if err != nil || item.Key != "a" {
			t.Fatalf("%+v, %v", item, err)
		}
		h.adds(tx, "7", "c", true)
		break
	}
	h.counts(tx, "7", 3)
	h.counts(h.pool, "7", 0)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.counts(h.pool, "7", 0)
	h.adds(h.pool, "7", "a", true)
}

// A second addition of a key waits for the first, and is not fresh if that commits. Other keys do not wait.
func TestAdditionWaitsForTheSameKeyAlone(t *testing.T) {
	h := newHeap(t)
	for _, commits := range []bool{true, false} {
		of := fmt.Sprint(commits)
		first, second := h.begin(pgx.ReadCommitted), h.begin(pgx.ReadCommitted)
		h.adds(first, of, "a", true)
		if _, err := second.Exec(t.Context(), "SET LOCAL lock_timeout = '1ms'"); err != nil {
			t.Fatal(err)
		}
		h.adds(second, of, "b", true)
		if _, err := second.Exec(t.Context(), "SET LOCAL lock_timeout = 0"); err != nil {
			t.Fatal(err)
		}
		added := make(chan struct{})
		go func() {
			defer close(added)
			n, err := h.texts.AddAll(t.Context(), second, of, persistence.Item[string]{Key: "a"},
				persistence.Item[string]{Key: "c"})
			if want := map[bool]int{true: 1, false: 2}[commits]; n != want || err != nil {
				t.Errorf("the first commits: %t; %d were added, %v; want %d", commits, n, err, want)
			}
		}()
		pgtest.AwaitBlocked(t, h.pool, second.Conn())
		if commits {
			h.commit(first)
		} else if err := first.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-added
		h.commit(second)
		h.counts(h.pool, of, 3)
	}
}

// With an old snapshot, writing items that a concurrent transaction has added or cleared is the error 40001.
func TestItemsAtRepeatableRead(t *testing.T) {
	h := newHeap(t)
	h.adds(h.pool, "7", "a", true)
	for name, write := range map[string]func(tx pgx.Tx) error{
		"Add": func(tx pgx.Tx) error { _, err := h.texts.Add(t.Context(), tx, "7", "b", ""); return err },
		"AddAll": func(tx pgx.Tx) error {
			_, err := h.texts.AddAll(t.Context(), tx, "7", persistence.Item[string]{Key: "b"})
			return err
		},
		"Clear": func(tx pgx.Tx) error { _, err := h.texts.Clear(t.Context(), tx, "7"); return err },
	} {
		tx := h.begin(pgx.RepeatableRead)
		h.counts(tx, "7", 1)
		if _, err := h.texts.Clear(t.Context(), h.pool, "7"); err != nil {
			t.Fatal(err)
		}
		h.adds(h.pool, "7", "b", true)
		h.counts(tx, "7", 1)
		if found := h.all(tx, "7"); len(found) != 1 || found[0].Key != "a" {
			t.Errorf("%s: %+v", name, found)
		}
		h.adds(tx, "7", "c", true)
		h.adds(tx, "7", "c", false)
		h.fails("40001", write(tx))
		_ = tx.Rollback(t.Context())
		if _, err := h.texts.Clear(t.Context(), h.pool, "7"); err != nil {
			t.Fatal(err)
		}
		h.adds(h.pool, "7", "a", true)
	}
}

// A pool is used at READ COMMITTED, whatever the default of its sessions is.
func TestItemsOfAPoolAreReadCommitted(t *testing.T) {
	h := newHeap(t)
	config := h.pool.Config()
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits := conn.Conn()
	conn.Release()
	first := h.begin(pgx.ReadCommitted)
	h.adds(first, "7", "a", true)
	added := make(chan struct{})
	go func() {
		defer close(added)
		h.adds(pool, "7", "a", false)
	}()
	pgtest.AwaitBlocked(t, h.pool, waits)
	h.commit(first)
	<-added
	if n, err := h.texts.Clear(t.Context(), pool, "7"); n != 1 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
}

// Items work on a connection without a pool, and with a driver that sends every parameter as text.
func TestItemsOfAConnectionInTheSimpleProtocol(t *testing.T) {
	h := newHeap(t)
	config := h.pool.Config()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on" // pgx refuses to quote otherwise
	config.ConnConfig.RuntimeParams["DateStyle"] = "German"
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	conn, err := pgx.ConnectConfig(t.Context(), config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	h.adds(conn, "7", "a", true)
	odd := `"}{ \u0000 ',` + "\u2028"
	if n, err := h.texts.AddAll(t.Context(), conn, "7", persistence.Item[string]{Key: "a"},
		persistence.Item[string]{Key: odd[:4], Value: odd}); n != 1 || err != nil {
		t.Errorf("%d were added, %v", n, err)
	}
	if found := h.all(conn, "7"); len(found) != 2 || found[1].Value != odd || found[1].Added.IsZero() {
		t.Errorf("%+v", found)
	}
	if n, err := h.texts.Clear(t.Context(), conn, "7"); n != 2 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
}

func TestItemsRefuseWhatCannotBeStored(t *testing.T) {
	h := newHeap(t)
	_, bad := persistence.NewItems[int]("", "A")
	_, schema := persistence.NewItems[int]("pg_x", "a")
	add := func(of, key, value string) error { _, err := h.texts.Add(t.Context(), nil, of, key, value); return err }
	addAll := func(n int, item persistence.Item[string]) error {
		_, err := h.texts.AddAll(t.Context(), nil, "7", slices.Repeat([]persistence.Item[string]{item}, n)...)
		return err
	}
	_, count := h.texts.Count(t.Context(), nil, "a\x00")
	_, clears := h.texts.Clear(t.Context(), nil, strings.Repeat("k", 513))
	var all error
	for _, err := range h.texts.All(t.Context(), nil, "") {
		all = err
	}
	mega := strings.Repeat("x", 1<<20-2)
	for name, c := range map[string]struct {
		err      error
		want     string
		tooLarge bool
	}{
		"no of":          {add("", "a", "x"), "add an item of reply/: argument of has 0 bytes: want 1 to 512", false},
		"no key":         {add("7", "", "x"), "argument key has 0 bytes: want 1 to 512", false},
		"long key":       {add("7", strings.Repeat("k", 513), "x"), "argument key has 513 bytes", false},
		"not UTF-8":      {add("7", "\xff", "x"), "in UTF-8 and without NUL", false},
		"value":          {add("7", "a", "\xff"), "item a: encode its value", false},
		"long value":     {add("7", "a", mega+"x"), "1048577 bytes, limit 1048576", true},
		"key of many":    {addAll(2, persistence.Item[string]{}), "argument key has 0 bytes", false},
		"many":           {addAll(10_001, persistence.Item[string]{Key: "a"}), "10001 items, limit 10000", true},
		"bytes of many":  {addAll(70, persistence.Item[string]{Key: "a", Value: mega}), "64 of 70 items have", true},
		"of of a count":  {count, "argument of has 2 bytes", false},
		"of of a clear":  {clears, "clear items of reply/kkk", false},
		"of of all":      {all, "read items of reply/: argument of has 0 bytes", false},
		"collection":     {bad, "beginning with", false},
		"name of schema": {schema, "reserved by Postgres", false},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) ||
			errors.Is(c.err, saga.ErrTooLarge) != c.tooLarge {
			t.Errorf("%s: %v, want it to say %q", name, c.err, c.want)
		}
	}
}

// The error for an item that the program can no longer decode names the item.
func TestItemThatCannotBeDecodedIsNamed(t *testing.T) {
	h := newHeap(t)
	h.adds(h.pool, "7", "a", true)
	numbers, err := persistence.NewItems[int](h.schema.Name(), "reply")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for item, err := range numbers.All(t.Context(), h.pool, "7") {
		seen++
		if err == nil || !strings.Contains(err.Error(), "read items of reply/7: item a: decode its value") {
			t.Errorf("%+v, %v", item, err)
		}
	}
	if seen != 1 {
		t.Errorf("%d items, want one error", seen)
	}
}

// The items of one saga among many are read by index. A page reads only its own items.
func TestItemsAreReachedByIndex(t *testing.T) {
	h := newHeap(t)
	const fill = `INSERT INTO :schema.saga_item (collection, collected_for, item_key, size, item_value)
		SELECT 'reply', 'of ' || n % 10, n::text, 2, '{}' FROM generate_series(1, 50000) n`
	pgtest.Probes{SQL: persistence.ItemStatements(h.texts), Fill: fill, MaxRows: 5000, Statements: map[string][]string{
		"item_count": {"reply", "of 7"},
		"item_clear": {"reply", "of 7"},
	}, PlannedAnew: true}.Check(t, h.pool, h.schema)
	pgtest.Probes{SQL: persistence.ItemStatements(h.texts), Fill: fill, MaxRows: 1000, Statements: map[string][]string{
		"item_page": {"reply", "of 7", "0", "1000", "4194304"},
	}, PlannedAnew: true}.Check(t, h.pool, h.schema)
}
