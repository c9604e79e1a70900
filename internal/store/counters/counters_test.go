package counters

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "counters.sql")
	add := append([]string{"e7", "s7", "optimistic", "3", "500", "10000000"}, slices.Repeat([]string{"1"}, 24)...)
	pgtest.Probes{
		SQL: New(schema).sql, MaxRows: 1000, PlannedAnew: true,
		Statements: map[string][]string{"add_counters": add, "prune_counters": {"1209600", "1000"}},
		Fill: `INSERT INTO :schema.saga_counter
			SELECT date_trunc('hour', now(), 'UTC') - h * interval '1 hour', 'e' || s, 's' || s, 'optimistic', 3, 500,
			now(), now(),
			       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
			FROM generate_series(0, 400) h, generate_series(1, 100) s`,
	}.Check(t, pool, schema)
}

// The meaning of every column depends on the same order in three places. This test finds a number in the wrong place.
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

// The table must name each number as the program does.
func TestCountersAreWrittenUnderTheirNames(t *testing.T) {
	t.Parallel()
	_, schema := pgtest.Database(t)
	store := New(schema)
	sql := store.sql["add_counters"]
	_, list, _ := strings.Cut(sql, "first, last,")
	list, _, _ = strings.Cut(list, "minute_")
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

// The counts of several processes in a minute add up, beside the row's other minutes, and beside the counts of an
// older program without minutes.
func TestMinutesAddUp(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	one := Saga{Saga: "s"}
	one.Sums[Steps], one.Sums[Retries] = 5, 2
	add := func() {
		e := Endpoint{Name: "e", Concurrency: 1, BatchMax: 1, Since: time.Second, Sagas: []Saga{one}}
		if err := New(schema).Add(t.Context(), pg.Committed(pool), e); err != nil {
			t.Error(err)
		}
	}
	change := func(set string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), schema.Render("UPDATE :schema.saga_counter SET "+set)); err != nil {
			t.Fatal(err)
		}
	}
	add()
	change("minute_steps = NULL, minute_retries = NULL, minute_dead = NULL")
	var begun time.Time
	if err := pool.QueryRow(t.Context(), "SELECT now()").Scan(&begun); err != nil {
		t.Fatal(err)
	}
	add()
	// one minute before and one after the minutes that these writes can fall into
	change("minute_steps[-1] = 100, minute_retries[60] = 100, minute_dead[60] = 100")
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 5 {
				add()
			}
		})
	}
	writers.Wait()
	hours, err := New(schema).Hours(t.Context(), pool, time.Hour)
	if err != nil || len(hours) == 0 {
		t.Fatal(hours, err)
	}
	var steps, counted, retries, dead int64
	for _, h := range hours {
		if steps += h.Steps; len(h.MinuteSteps) != 60 || len(h.MinuteRetries) != 60 || len(h.MinuteDead) != 60 {
			t.Fatalf("%+v", h)
		}
		for n := range 60 {
			counted, retries, dead = counted+h.MinuteSteps[n], retries+h.MinuteRetries[n], dead+h.MinuteDead[n]
		}
	}
	if steps != 22*5 || counted != 21*5 || retries != 21*2 || dead != 0 {
		t.Errorf("%d steps, of which %d by the minute, %d retries, %d dead", steps, counted, retries, dead)
	}
	var others int
	if err := pool.QueryRow(t.Context(), schema.Render(`SELECT minute_steps[-1] + minute_retries[60] + minute_dead[60]
		FROM :schema.saga_counter ORDER BY hour LIMIT 1`)).Scan(&others); err != nil || others != 300 {
		t.Errorf("other minutes have %d, %v", others, err)
	}
	now := hours[len(hours)-1].Now
	written := hours[len(hours)-1].MinuteSteps[now.Minute()]
	if oneMinute := begun.Truncate(time.Minute).Equal(now.Truncate(time.Minute)); oneMinute && written != 21*5 {
		t.Errorf("this minute has %d", written)
	}
}

// A number that is too large for its minute is cut: the other numbers are still written.
func TestMinutesAreCut(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	one := Saga{Saga: "s"}
	one.Sums[Steps], one.Sums[Dead] = 3<<30, 1<<30
	for range 2 {
		e := Endpoint{Name: "e", Concurrency: 1, BatchMax: 1, Since: time.Second, Sagas: []Saga{one}}
		if err := New(schema).Add(t.Context(), pg.Committed(pool), e); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := New(schema).Read(t.Context(), pool, time.Hour)
	if err != nil || len(rows) != 1 || rows[0].Sums[Steps] != 6<<30 || rows[0].Sums[Dead] != 2<<30 {
		t.Errorf("%+v, %v", rows, err)
	}
}
