package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func (w *world) oldIDs(n int) {
	w.exec(`INSERT INTO edda.sent_id (id, sum, at) SELECT gen_random_uuid(), E'\\x00', now() - interval '8 days'
		FROM generate_series(1, $1)`, n)
}

// A clean-up that deletes a fixed number of rows every ten minutes never catches up with a service that adds more.
func TestCleanUpGoesOnWhileThereIsMuchToDelete(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.oldIDs(120_500)
	w.exec(`INSERT INTO edda.sent_id (id, sum) VALUES (gen_random_uuid(), E'\\x00')`)
	bus.CleanNow(t.Context(), w.bus)
	if left := w.count("SELECT count(*) FROM edda.sent_id"); left != 1 {
		t.Errorf("after a clean-up %d ids are left, want the one that is new", left)
	}
}

// A session that was left open in a transaction keeps a ring from rotating, so that ids or copies are kept for ever.
func TestARingThatASessionHoldsIsTold(t *testing.T) {
	w := newWorld(t, bus.Options{})
	log := &kept{}
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger()})
	w.exec(`UPDATE edda.ring SET since = now() - interval '1 year' WHERE name = 'inbox'`)
	forgotten := w.begin()
	w.execTx(forgotten, w.sql(`SELECT FROM edda.inbox_1`))
	bus.CleanNow(t.Context(), b)
	want := fmt.Sprintf("process %d", pgtest.Backend(t, forgotten))
	if text := log.String(); strings.Count(text, "old rows were not deleted") != 1 ||
		!strings.Contains(text, "table=inbox") || !strings.Contains(text, want) {
		t.Errorf("the log says %q, want %q in one line of the inbox", text, want)
	}
	w.want(0, `SELECT slot FROM edda.ring WHERE name = 'inbox'`)
}

// When one process has cleaned up, the other processes wait their turn.
func TestProcessesTakeTurnsToCleanUp(t *testing.T) {
	w := newWorld(t, bus.Options{})
	first, second := w.newBus(bus.Options{Schema: w.schema}), w.newBus(bus.Options{Schema: w.schema})
	for n, turn := range []struct {
		process *bus.Bus
		cleans  bool
	}{{first, true}, {second, false}, {first, false}, {nil, false}, {second, true}} {
		if turn.process == nil {
			w.exec(`UPDATE edda.lease SET expires = now() WHERE name = 'clean'`)
			continue
		}
		w.oldIDs(1)
		bus.CleanInTurnNow(t.Context(), turn.process)
		if left := w.count("SELECT count(*) FROM edda.sent_id"); left == 0 != turn.cleans {
			t.Errorf("turn %d: the process cleaned up: %v, want %v", n, left == 0, turn.cleans)
		}
	}
}

// lookers counts the searches for a pin, and how many of them ran at the same time.
type lookers struct {
	mu               sync.Mutex
	all, now, atOnce int
}

type lookKey struct{}

func (l *lookers) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(d.SQL, "pg_stat_get_dead_tuples") {
		return ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.now = l.all+1, l.now+1
	l.atOnce = max(l.atOnce, l.now)
	return context.WithValue(ctx, lookKey{}, true)
}

func (l *lookers) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(lookKey{}) == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now--
}

func (l *lookers) count() (all, atOnce int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, l.atOnce
}

// A process with a hundred endpoints has one clean-up loop, which runs until the last endpoint has ended.
func TestOneEndpointOfAProcessCleans(t *testing.T) {
	w := newWorld(t, bus.Options{})
	config, seen := w.pool.Config(), &lookers{}
	config.ConnConfig.Tracer = seen
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b, err := bus.New(pool, bus.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	bus.LookForPinsEvery(b, time.Millisecond)
	var stops []func()
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- b.Clean(ctx) }()
		stop := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop)
		stops = append(stops, stop)
	}
	for _, stop := range stops {
		before, _ := seen.count()
		w.until("somebody has looked thirty times", func() bool { now, _ := seen.count(); return now >= before+30 })
		stop()
	}
	all, atOnce := seen.count()
	if atOnce != 1 {
		t.Errorf("%d looked at the same time, want one", atOnce)
	}
	bus.LookForPinNow(t.Context(), b)
	if now, _ := seen.count(); now != all+1 {
		t.Errorf("%d looks after the last caller has ended, want the test's own", now-all)
	}
}
