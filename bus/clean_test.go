package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func (w *world) oldIDs(n int) {
	w.exec(`INSERT INTO edda.sent_id (id, sum, at) SELECT gen_random_uuid(), E'\\x00', now() - interval '8 days'
		FROM generate_series(1, $1)`, n)
}

// A clean-up that deletes a fixed number of rows every ten minutes never ends where a service adds more than that.
func TestCleanUpGoesOnWhileThereIsMuchToDelete(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.oldIDs(120_500)
	w.exec(`INSERT INTO edda.sent_id (id, sum) VALUES (gen_random_uuid(), E'\\x00')`)
	bus.CleanNow(t.Context(), w.bus)
	if left := w.count("SELECT count(*) FROM edda.sent_id"); left != 1 {
		t.Errorf("after a clean-up %d ids are left, want the one that is new", left)
	}
}

// A session that somebody forgot in a transaction keeps a ring from turning, so that ids or copies are kept without
// end.
func TestARingThatASessionHoldsIsTold(t *testing.T) {
	w := newWorld(t, bus.Options{})
	log := &kept{}
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger()})
	w.exec(`UPDATE edda.ring SET since = now() - interval '1 year' WHERE name = 'inbox'`)
	forgotten := w.begin()
	w.execTx(forgotten, w.sql(`SELECT FROM edda.inbox_1`))
	bus.CleanNow(t.Context(), b)
	want := fmt.Sprintf("process %d", forgotten.Conn().PgConn().PID())
	if text := log.String(); strings.Count(text, "old rows were not deleted") != 1 ||
		!strings.Contains(text, "table=inbox") || !strings.Contains(text, want) {
		t.Errorf("the log says %q, want %q in one line of the inbox", text, want)
	}
	w.want(0, `SELECT slot FROM edda.ring WHERE name = 'inbox'`)
}

// A hundred processes need not do what one of them has just done.
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

// lookers are the names of the callers of Clean that look for pins, in the order of their looks.
type lookers struct {
	mu   sync.Mutex
	seen []string
}

type lookerKey struct{}

func (l *lookers) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.Contains(d.SQL, "pg_stat_progress_vacuum") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen = append(l.seen, ctx.Value(lookerKey{}).(string))
	}
	return ctx
}

func (l *lookers) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *lookers) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// A process with a hundred endpoints cleans up once, and goes on when the endpoint that did it has ended.
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
	stop := map[string]func(){}
	for _, name := range []string{"a", "b", "c"} {
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), lookerKey{}, name))
		ended := make(chan error, 1)
		go func() { ended <- b.Clean(ctx) }()
		stop[name] = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop[name])
	}
	for left := 3; left > 0; left-- {
		before := len(seen.all())
		w.until("somebody has looked thirty times", func() bool { return len(seen.all()) >= before+30 })
		looked := seen.all()[before:]
		if all := slices.Compact(slices.Sorted(slices.Values(looked))); len(all) != 1 {
			t.Fatalf("%v look at the same time, want one", all)
		}
		stop[looked[0]]()
		delete(stop, looked[0])
	}
}
