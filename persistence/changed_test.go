package persistence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Changed returns exactly the instances that have changed since the reader read them.
func TestChanged(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.insert(t, "order/7", "order/8", `bill/"a",{b}\ü`)
	live := map[string]saga.Instance{}
	for _, name := range []string{"order/7", "order/8", `bill/"a",{b}\ü`} {
		sagaName, key, _ := strings.Cut(name, "/")
		i, ok, err := db.store.Read(t.Context(), db, sagaName, key)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		live[name] = i
	}
	seven := live["order/7"]
	ask := []persistence.Known{
		{Saga: "order", Key: "7"},
		{Saga: "order", Key: "7", ID: seven.ID, Version: seven.Version},
		{Saga: "order", Key: "7", ID: seven.ID, Version: seven.Version - 1},
		{Saga: "order", Key: "7", ID: live["order/8"].ID, Version: seven.Version},
		{Saga: "order", Key: "nobody"},
		{Saga: "order", Key: "gone", ID: seven.ID, Version: 4},
		{Saga: "bill", Key: `"a",{b}\ü`},
	}
	got, err := db.store.Changed(t.Context(), db, ask)
	if err != nil {
		t.Fatal(err)
	}
	told := map[int]persistence.Change{}
	for _, c := range got {
		told[c.N] = c
	}
	for _, n := range []int{0, 2, 3} {
		if c := told[n]; !c.Live || c.Faulty != nil || fmt.Sprintf("%+v", c.Instance) != fmt.Sprintf("%+v", seven) {
			t.Errorf("%d: %+v\nwant %+v", n, c, seven)
		}
	}
	if c := told[6]; c.Instance.Key != `"a",{b}\ü` || string(c.Instance.State) != `{"b": 1, "a":2}` {
		t.Errorf("a key with quotes: %+v", c)
	}
	if c, ok := told[5]; !ok || c.Live || c.Instance.Key != "gone" {
		t.Errorf("an instance that is gone: %v %+v", ok, c)
	}
	if len(got) != 5 {
		t.Errorf("%d changes, want 5: %+v", len(got), got)
	}
}

func TestChangedWithAFaultyColumn(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.insert(t, "order/7")
	if _, err := db.Exec(t.Context(), db.render(`UPDATE :schema.saga SET timeouts = '7'`)); err != nil {
		t.Fatal(err)
	}
	got, err := db.store.Changed(t.Context(), db, []persistence.Known{{Saga: "order", Key: "7"}})
	if err != nil || len(got) != 1 || got[0].Faulty == nil || got[0].Instance.Version != 3 ||
		got[0].Instance.Pending != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// A thousand instances of a table that was never analysed take a thousand index probes, with a plan for the full table.
func TestPlanOfChanged(t *testing.T) {
	t.Parallel()
	db := open(t)
	// with the owner's role
	if _, err := pgtest.Pool(t).Exec(t.Context(),
		db.render(`ALTER TABLE :schema.saga SET (autovacuum_enabled = off)`)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), db.render(
		`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', n::text, 1, 1, '{}' FROM generate_series(1, 20000) n`)); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), pg.ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	sql := persistence.Statements(db.store).Get("changed")
	if _, err := tx.Conn().Prepare(t.Context(), "changed", sql); err != nil {
		t.Fatal(err)
	}
	array := func(one func(n int) string) string {
		var all []string
		for n := range 100 {
			all = append(all, one(n))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	scans := pgtest.Explain(t, tx, "changed", array(func(int) string { return "order" }),
		array(func(n int) string { return fmt.Sprint(n * 200) }),
		array(func(int) string { return saga.ID{}.String() }), array(func(int) string { return "0" }))
	for _, scan := range scans {
		if scan.Table == "saga" && (scan.Index != "saga_key_unique" || scan.Rows > 100 || scan.Removed > 0) {
			t.Errorf("%v", scan)
		}
	}
}

// One call for a thousand instances, in a table of a hundred thousand, that have not changed.
func BenchmarkChanged(b *testing.B) {
	pool, schema := pgtest.Database(b)
	store := persistence.New(schema)
	if _, err := pool.Exec(b.Context(), schema.Render(
		`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', n::text, 1, 1, '{}' FROM generate_series(1, 100000) n`)); err != nil {
		b.Fatal(err)
	}
	known := make([]persistence.Known, 1000)
	for n := range known {
		known[n] = persistence.Known{Saga: "order", Key: fmt.Sprint(n * 99)}
	}
	changes, err := store.Changed(b.Context(), pool, known)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range changes {
		known[c.N].ID, known[c.N].Version = c.Instance.ID, c.Instance.Version
	}
	for b.Loop() {
		if changes, err := store.Changed(b.Context(), pool, known); err != nil || len(changes) > 0 {
			b.Fatal(len(changes), err)
		}
	}
}
