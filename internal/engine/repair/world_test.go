package repair_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "repair.sql")
}

type (
	place   struct{ Order string }
	change  struct{ Order string }
	overdue struct{}
)

func (place) Kind() string   { return "order.place" }
func (change) Kind() string  { return "order.change" }
func (overdue) Kind() string { return "order.overdue" }

// order counts the changes, and how often it was overdue.
type order struct {
	N       int
	Overdue int
	Card    string `edda:"secret"`
}

// world is a schema with the saga order in the endpoint orders, and an operator.
type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema string
	bus    *bus.Bus
	op     operate.Instances
	see    *operate.Operator
	def    *saga.Definition
	hold   chan chan struct{} // a handler of change that receives a channel waits until the channel is closed
}

// order7 is the instance that tests change.
var order7 = operate.Target{Saga: "order", Key: "7"}

func both(t *testing.T, do func(w *world)) {
	for name, s := range map[string]saga.Store{"pessimistic": saga.Pessimistic, "optimistic": saga.Optimistic} {
		t.Run(name, func(t *testing.T) { do(newWorld(t, saga.Options{Store: s})) })
	}
}

func newWorld(t *testing.T, o saga.Options) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	w := &world{T: t, pool: pool, schema: schema.Name(), hold: make(chan chan struct{}, 1)}
	owner, err := operate.New(pgtest.Pool(t), operate.Options{Schema: w.schema})
	w.must(err)
	w.must(owner.Queues().Install(t.Context(), "orders", "order.place", "order.change"))
	w.must(owner.Queues().Install(t.Context(), "parcels")) // timeouts are searched in all queues
	w.bus, err = bus.New(pool, bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler),
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	w.must(err)
	w.see = w.operator(operate.Options{})
	w.op = w.see.Instances()
	w.def = saga.Define("order", o,
		saga.StartedBy(func(m place) string { return m.Order }, func(s *order, ctx *saga.Context, _ place) error {
			s.Card = "4711"
			ctx.Timeout(time.Hour, overdue{}, saga.Named("due"))
			ctx.Timeout(2*time.Hour, overdue{})
			if o.Remember > 0 {
				ctx.Complete()
			}
			return nil
		}),
		saga.Handles(func(m change) string { return m.Order }, func(s *order, _ *saga.Context, _ change) error {
			s.N++
			select {
			case until := <-w.hold:
				<-until
			default:
			}
			return nil
		}),
		saga.OnTimeout(func(s *order, _ *saga.Context, _ overdue) error { s.Overdue++; return nil }))
	return w
}

func (w *world) operator(options operate.Options) *operate.Operator {
	w.Helper()
	options.Schema = w.schema
	o, err := operate.New(w.pool, options)
	w.must(err)
	return o
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run runs the endpoint until the test or stop ends it.
func (w *world) run() (stop func()) {
	w.Helper()
	e, err := bus.NewEndpoint(w.bus, "orders", bus.EndpointOptions{Poll: 20 * time.Millisecond}, bus.Saga(w.def))
	w.must(err)
	return pgtest.Run(w.T, "endpoint orders", e.Run)
}

func (w *world) send(m saga.Message) {
	w.Helper()
	_, err := w.bus.Send(w.Context(), m)
	w.must(err)
}

func (w *world) until(what string, ok func() bool) {
	w.Helper()
	end := time.After(pgdev.Patience(20 * time.Second))
	for tick := time.NewTicker(10 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			w.Fatalf("waited for: %s", what)
		}
	}
}

// living returns the instance of order 7, the zero one if it does not exist.
func (w *world) living() saga.Instance {
	w.Helper()
	l, _, err := w.op.Show(w.Context(), "order", "7")
	w.must(err)
	return l.Instance
}

// begin starts order 7 and returns it.
func (w *world) begin() saga.Instance {
	w.Helper()
	w.send(place{Order: "7"})
	w.until("order 7 lives", func() bool { return w.living().Version == 1 })
	return w.living()
}

func (w *world) state() (s order) {
	w.Helper()
	w.must(json.Unmarshal(w.living().State, &s))
	return s
}

// versions returns the versions of an instance in the history, the oldest first.
func (w *world) versions(id saga.ID) []history.Version {
	w.Helper()
	life, ok, err := w.see.History().Life(w.Context(), id)
	w.must(err)
	if !ok {
		w.Fatal("the instance is not known")
	}
	versions, _, err := w.see.History().Timeline(w.Context(), life, saga.ID{}, 10)
	w.must(err)
	return versions
}

func (w *world) entry() operate.AuditEntry {
	w.Helper()
	all, err := w.see.Audit(w.Context(), operate.AuditFilter{Limit: 1})
	w.must(err)
	if len(all) == 0 {
		return operate.AuditEntry{}
	}
	return all[0]
}

func (w *world) count(sql string, args ...any) (n int) {
	w.Helper()
	sql = strings.ReplaceAll(sql, "edda.", `"`+w.schema+`".`)
	w.must(w.pool.QueryRow(w.Context(), sql, args...).Scan(&n))
	return n
}

// holds sends a change and waits until its handler has the instance. The handler returns after release, or when the
// test ends.
func (w *world) holds() (release func()) {
	w.Helper()
	until := make(chan struct{})
	release = sync.OnceFunc(func() { close(until) })
	w.Cleanup(release)
	w.hold <- until
	w.send(change{Order: "7"})
	w.until("a handler has it in hand", func() bool { return len(w.hold) == 0 })
	return release
}
