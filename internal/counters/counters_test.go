package counters

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/internal/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "counters.sql")
	add := append([]string{"e7", "s7", "optimistic", "3", "500", "10000000"}, slices.Repeat([]string{"1"}, 24)...)
	pgtest.Probes{
		File: "counters.sql", MaxRows: 1000, PlannedAnew: true,
		Statements: map[string][]string{"add_counters": add, "prune_counters": {"1209600", "1000"}},
		Fill: `INSERT INTO :schema.saga_counter
			SELECT date_trunc('hour', now(), 'UTC') - h * interval '1 hour', 'e' || s, 's' || s, 'optimistic', 3, 500,
			now(), now(),
			       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
			FROM generate_series(0, 400) h, generate_series(1, 100) s`,
	}.Check(t, pool, schema)
}

// What every column means is a matter of order in three places. A number that is in the wrong one is found here.
func TestCountersComeBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := New(schema)
	written := Saga{Saga: "s", Store: "optimistic"}
	for n := range written.Sums {
		written.Sums[n] = int64(n + 1)
		if Number(n) >= Handler {
			written.Sums[n] *= int64(time.Microsecond)
		}
	}
	for range 2 {
		err := store.Add(t.Context(), pool, Endpoint{
			Name: "e", Concurrency: 3, BatchMax: 500, Since: time.Minute, Sagas: []Saga{written},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := store.Read(t.Context(), pool, time.Hour)
	if err != nil || len(rows) != 1 {
		t.Fatalf("read %v, %v", rows, err)
	}
	got := rows[0]
	if period := got.Last.Sub(got.First); period < time.Minute || period > time.Hour {
		t.Errorf("counted from %v to %v, want a minute or little more", got.First, got.Last)
	}
	want := Row{Endpoint: "e", Saga: written, Concurrency: 3, BatchMax: 500, First: got.First, Last: got.Last}
	for n := range want.Sums {
		want.Sums[n] *= 2
	}
	if got != want {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}
}

// The table must have for each number the name that the program has for it.
func TestCountersAreWrittenUnderTheirNames(t *testing.T) {
	t.Parallel()
	_, schema := pgtest.Database(t)
	store := New(schema)
	sql := store.sql["add_counters"]
	_, list, _ := strings.Cut(sql, "first, last,")
	list, _, _ = strings.Cut(list, ")")
	_, read, _ := strings.Cut(store.sql["read_counters"], "ARRAY[")
	read, _, _ = strings.Cut(read, "]")
	read = strings.NewReplacer("sum(", "", ")", "").Replace(read)
	fields := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	}
	if !slices.Equal(fields(list), fields(read)) {
		t.Errorf("written as %v\nand read as %v", fields(list), fields(read))
	}
	for _, name := range fields(list) {
		if !strings.Contains(sql, name+" = c."+name+" + excluded."+name) {
			t.Errorf("%s is not added to itself", name)
		}
	}
}
