package persistence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
)

// insert writes instances "saga/key" directly.
func (db database) insert(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		sagaName, key, _ := strings.Cut(name, "/")
		_, err := db.Exec(t.Context(), db.render(
			`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state, timeouts)
			VALUES (gen_random_uuid(), $1, $2, 3, 2, '{"b": 1, "a":2}',
			'[{"kind":"k","due":"2026-01-01T00:00:00Z","id":"00000000-0000-0000-0000-000000000007"}]')`), sagaName, key)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (db database) list(t *testing.T, o persistence.ListOptions) (names string) {
	t.Helper()
	all, err := db.store.List(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		names += " " + l.Instance.Saga + "/" + l.Instance.Key
	}
	return strings.TrimPrefix(names, " ")
}

func TestList(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.insert(t, "order/7", "order/70", "order/71", "order/8", "order/Z", "order/é", "order/%", "bill/7", "parcel/1")
	for _, c := range []struct {
		o    persistence.ListOptions
		want string
	}{
		{persistence.ListOptions{}, "bill/7 order/% order/7 order/70 order/71 order/8 order/Z order/é parcel/1"},
		{persistence.ListOptions{Limit: 2}, "bill/7 order/%"},
		{persistence.ListOptions{Limit: 2, AfterSaga: "order", AfterKey: "é"}, "parcel/1"},
		{persistence.ListOptions{Saga: "order"}, "order/% order/7 order/70 order/71 order/8 order/Z order/é"},
		{persistence.ListOptions{Saga: "order", AfterKey: "71", Limit: 2}, "order/8 order/Z"},
		{persistence.ListOptions{Saga: "order", AfterKey: "é"}, ""},
		{persistence.ListOptions{Saga: "order", KeyPrefix: "7"}, "order/7 order/70 order/71"},
		{persistence.ListOptions{Saga: "order", KeyPrefix: "7", AfterKey: "7"}, "order/70 order/71"},
		{persistence.ListOptions{Saga: "order", KeyPrefix: "%"}, "order/%"},
		{persistence.ListOptions{Saga: "order", KeyPrefix: "nobody"}, ""},
		{persistence.ListOptions{Saga: "ord"}, ""},
		{persistence.ListOptions{Saga: "parcel"}, "parcel/1"},
	} {
		if got := db.list(t, c.o); got != c.want {
			t.Errorf("%+v\ngot  %s\nwant %s", c.o, got, c.want)
		}
	}
	if _, err := db.store.List(t.Context(), db, persistence.ListOptions{KeyPrefix: "7"}); err == nil {
		t.Error("a prefix without a saga was taken")
	}
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	db := open(t)
	if _, err := db.Exec(t.Context(), db.render(
		`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', lpad(n::text, 4, '0'), 1, 1, '{}' FROM generate_series(1,
		450) n`)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.store.List(t.Context(), db, persistence.ListOptions{Limit: 201}); err == nil {
		t.Error("a limit that is too high is taken")
	}
	seen, after := 0, ""
	for range 4 {
		page, err := db.store.List(t.Context(), db,
			persistence.ListOptions{Saga: "order", AfterKey: after, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			if seen++; l.Instance.Key != fmt.Sprintf("%04d", seen) {
				t.Fatalf("number %d is %s", seen, l.Instance.Key)
			}
			after = l.Instance.Key
		}
	}
	if seen != 450 {
		t.Errorf("%d instances in four pages, want 450", seen)
	}
}

// Oldest lists the instances that began first, of any saga and key.
func TestOldest(t *testing.T) {
	t.Parallel()
	db := open(t)
	for n, name := range []string{"b/2", "a/1", "c/3"} {
		of, key, _ := strings.Cut(name, "/")
		_, err := db.Exec(t.Context(), db.render(`INSERT INTO :schema.saga
			(iid, saga, key, version, state_version, state) VALUES (
				lpad(to_hex($1::int), 32, '0')::uuid, $2, $3, 1, 1, '{"a": 1}')`), n, of, key)
		if err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]string{2: "b/2 a/1 ", 10: "b/2 a/1 c/3 "} {
		got := ""
		all, err := db.store.List(t.Context(), db, persistence.ListOptions{Oldest: true, Limit: limit})
		for _, l := range all {
			if got += l.Instance.Saga + "/" + l.Instance.Key + " "; len(l.Instance.State) > 0 {
				t.Errorf("%s has its state", l.Instance.Key)
			}
		}
		if err != nil || got != want {
			t.Errorf("the %d oldest are %s, %v, want %s", limit, got, err, want)
		}
	}
}

// A stuck instance is found behind many remembered instances, and the search ends.
func TestQuietIsFoundBehindWhatIsRemembered(t *testing.T) {
	t.Parallel()
	db := open(t)
	over := func(from, to int) {
		t.Helper()
		_, err := db.Exec(t.Context(), db.render(`INSERT INTO :schema.saga
			(iid, saga, key, version, state_version, state, timeouts)
			SELECT lpad(to_hex(n), 32, '0')::uuid, 'order', n::text, 1, 1, '{}', json_build_array(json_build_object(
				'kind', 'edda.forget', 'due', now() + interval '1 h', 'id', gen_random_uuid()))
			FROM generate_series($1::int, $2::int) n`), from, to)
		if err != nil {
			t.Fatal(err)
		}
	}
	over(1, persistence.QuietWalk-1)
	db.insert(t, "order/stuck") // its id is larger
	all, err := db.store.List(t.Context(), db, persistence.ListOptions{Quiet: true})
	if err != nil || len(all) != 1 || all[0].Instance.Key != "stuck" || all[0].Overdue.IsZero() {
		t.Errorf("of %d rows: %+v, %v", persistence.QuietWalk, all, err)
	}
	over(persistence.QuietWalk, persistence.QuietWalk)
	if got := db.list(t, persistence.ListOptions{Quiet: true}); got != "" {
		t.Errorf("behind %d rows it finds %s", persistence.QuietWalk, got)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.insert(t, "order/7", "order/8")
	holder, err := db.BeginTx(t.Context(), pg.ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(t.Context()) }()
	if _, err := holder.Exec(t.Context(), db.render(`SELECT FROM :schema.saga FOR UPDATE`)); err != nil {
		t.Fatal(err)
	}
	l, ok, err := db.store.Show(t.Context(), db, "order", "7")
	i := l.Instance
	if err != nil || !ok || i.Key != "7" || i.Version != 3 || i.StateVersion != 2 ||
		string(i.State) != `{"b": 1, "a":2}` ||
		len(i.Pending) != 1 || i.Pending[0].Kind != "k" || i.ID.IsZero() || l.Started.IsZero() || l.Faulty != nil {
		t.Errorf("%+v %v %v", l, ok, err)
	}
	if _, ok, err := db.store.Show(t.Context(), db, "order", "9"); ok || err != nil {
		t.Errorf("a key that nobody has: %v %v", ok, err)
	}
}

func TestListedRowEditedByHand(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.insert(t, "order/7")
	if _, err := db.Exec(t.Context(), db.render(`UPDATE :schema.saga SET originator = '[1]'`)); err != nil {
		t.Fatal(err)
	}
	all, err := db.store.List(t.Context(), db, persistence.ListOptions{})
	if err != nil || len(all) != 1 || all[0].Faulty == nil || all[0].Instance.Pending != nil {
		t.Errorf("%+v %v", all, err)
	}
}

func TestListsReadOnePageOfTheTable(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Probes{
		SQL: persistence.Statements(persistence.New(schema)), MaxRows: 50, PlannedAnew: true,
		Statements: map[string][]string{
			"list": {"order", "5", "order", "70000", "50"},
			"show": {"order", "7"},
		},
		Fill: `INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
			SELECT gen_random_uuid(), 'order', n::text, 1, 1, '{}' FROM generate_series(1, 100000) n`,
	}.Check(t, pool, schema)
}

// explaining counts the buffers that queries read.
type explaining struct {
	persistence.Queryer
	buffers int
}

func (e *explaining) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := e.Queryer.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "+sql, args...)
	if err != nil {
		return nil, err
	}
	text, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, err
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		return nil, err
	}
	e.buffers = plans[0].Plan.Hit + plans[0].Plan.Read
	return e.Queryer.Query(ctx, sql, args...)
}

// Rows before the page are not read, in the list of all sagas and in the list of one.
func TestADeepPageOfAListCostsWhatTheFirstCosts(t *testing.T) {
	t.Parallel()
	db := open(t)
	if _, err := db.Exec(t.Context(), db.render(
		`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', lpad(n::text, 6, '0'), 1, 1, '{}' FROM generate_series(1,
		50000) n`)); err != nil {
		t.Fatal(err)
	}
	for _, o := range []persistence.ListOptions{
		{Limit: 10}, {Limit: 10, AfterSaga: "order", AfterKey: "049000"}, {Limit: 10, AfterSaga: "order\x01"},
		{Limit: 10, Saga: "order", AfterKey: "049000"},
		{Limit: 10, Saga: "order", KeyPrefix: "049", AfterKey: "049500"},
	} {
		q := &explaining{Queryer: db}
		if _, err := db.store.List(t.Context(), q, o); err != nil {
			t.Fatal(err)
		}
		if q.buffers == 0 || q.buffers > 30 {
			t.Errorf("%+v reads %d buffers", o, q.buffers)
		}
	}
}
