package whereabouts_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

// world is a schema with a bus, and an operator's reader.
type world struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
	bus    *bus.Bus
	op     *operate.Operator
	see    *whereabouts.Reader
}

func newWorld(t *testing.T, o bus.Options) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, schema: pgdev.Schema(t)}
	pgtest.Migrate(t, pgtest.Pool(t), w.schema)
	w.pool = pgtest.PoolUnderTest(t)
	o.Wakeup = pgtest.IfPooled(bus.PollOnly, o.Wakeup)
	o.Schema, o.AutoInstall, o.Logger = w.schema, true, slog.New(slog.DiscardHandler)
	var err error
	if w.bus, err = bus.New(w.pool, o); err != nil {
		t.Fatal(err)
	}
	if w.op, err = operate.New(w.pool, operate.Options{Schema: w.schema}); err != nil {
		t.Fatal(err)
	}
	w.see = w.op.History()
	return w
}

func (w *world) endpoint(name string, o bus.EndpointOptions, parts ...bus.Part) *bus.Endpoint {
	w.t.Helper()
	e, err := bus.NewEndpoint(w.bus, name, o, parts...)
	if err == nil {
		err = e.Install(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// runner is an endpoint or a relay.
type runner interface {
	Run(ctx context.Context) error
}

// run runs an endpoint until the test or stop ends it.
func (w *world) run(r runner) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) start(name string, o bus.EndpointOptions, parts ...bus.Part) (stop func()) {
	w.t.Helper()
	return w.run(w.endpoint(name, o, parts...))
}

func (w *world) send(m saga.Message, o ...saga.SendOption) saga.ID {
	w.t.Helper()
	sent, err := w.bus.Send(w.t.Context(), m, o...)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent.ID
}

func (w *world) message(id saga.ID) whereabouts.Message {
	w.t.Helper()
	m, err := w.see.Message(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

var (
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z`)
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	process = regexp.MustCompile(`[^ :]+ \(process \d+\)`)
	howLong = regexp.MustCompile(`in [0-9.]+(ms|s|m|h)\w*,`)
)

// says returns the place of a message in each endpoint, without the details that differ from run to run.
func says(m *whereabouts.Message) (lines []string) {
	for _, p := range m.Places {
		text := anyTime.ReplaceAllString(p.Says(), "TIME")
		text = anyID.ReplaceAllString(process.ReplaceAllString(text, "PROCESS"), "ID")
		lines = append(lines, string(p.State)+": "+howLong.ReplaceAllString(text, "in SPAN,"))
	}
	return lines
}

// is waits until the places of a message, in words, are as wanted.
func (w *world) is(id saga.ID, want ...string) whereabouts.Message {
	w.t.Helper()
	var m whereabouts.Message
	w.until(want[0], func() bool {
		m = w.message(id)
		return slices.Equal(says(&m), want)
	}, func() string { return strings.Join(says(&m), "\n") })
	return m
}

func (w *world) until(what string, ok func() bool, got ...func() string) {
	w.t.Helper()
	end := time.After(pgdev.Patience(20 * time.Second))
	for tick := time.NewTicker(10 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			for _, g := range got {
				what += "\nbut\n" + g()
			}
			w.t.Fatalf("waited for: %s", what)
		}
	}
}

func (w *world) exec(sql string) {
	w.t.Helper()
	pgtest.Exec(w.t, w.pool, strings.ReplaceAll(sql, "edda.", `"`+w.schema+`".`))
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	sql = strings.ReplaceAll(sql, "edda.", `"`+w.schema+`".`)
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}
