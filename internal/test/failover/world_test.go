//go:build failover

package failover

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

type deposit struct{ Account string }

func (deposit) Kind() string { return "deposit" }

type account struct{ Deposits int }

func (a *account) add(*saga.Context, deposit) error { a.Deposits++; return nil }

var accounts = saga.Define("account", saga.Options{},
	saga.StartedBy(func(m deposit) string { return m.Account }, (*account).add))

// ledger is a table that a handler writes through its transaction: a row for each call that committed.
const ledger = `CREATE TABLE IF NOT EXISTS ledger (id uuid NOT NULL)`

func note(ctx *bus.Context, tx pgx.Tx, _ deposit) error {
	_, err := tx.Exec(ctx, "INSERT INTO ledger (id) VALUES ($1)", ctx.Info().ID)
	return err
}

// world is a private server, and programs that reach it or its standby, whichever takes writes.
type world struct {
	*testing.T
	primary *pgdev.Server
	pool    *pgxpool.Pool
	bus     *bus.Bus
	dsn     string
	sent    []saga.ID // that were confirmed

	mu    sync.Mutex
	calls map[saga.ID]bool // of the handler without a transaction
	gone  map[saga.ID]bool // over the border
	ticks int              // of the schedule
}

type tick struct{}

func (tick) Kind() string { return "tick" }

// ticked notes a run of the manifest.
func (w *world) ticked(*bus.Context, tick) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticks++
	return nil
}

func (w *world) runs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ticks
}

func (w *world) call(ctx *bus.Context, _ deposit) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[ctx.Info().ID] = true
	return nil
}

func (w *world) forward(_ context.Context, messages []*saga.Delivery) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range messages {
		w.gone[m.Info.ID] = true
	}
	return make([]error, len(messages))
}

// outside returns how many messages the handler without a transaction handled, and how many crossed the border.
func (w *world) outside() (calls, gone int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls), len(w.gone)
}

func newWorld(t *testing.T, settings map[string]string) *world {
	t.Helper()
	primary, err := pgdev.Start(t.Context(), pgdev.Options{Private: true, Durable: true, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, primary: primary, calls: map[saga.ID]bool{}, gone: map[saga.ID]bool{}}
	t.Cleanup(func() { w.must(primary.Stop()) })
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connect makes a bus over a pool that finds the server which takes writes.
func (w *world) connect(servers ...*pgdev.Server) {
	w.Helper()
	hosts, ports := "", ""
	for _, s := range servers {
		hosts, ports = hosts+",127.0.0.1", ports+fmt.Sprintf(",%d", portOf(w.T, s))
	}
	w.dsn = fmt.Sprintf("host=%s port=%s user=edda dbname=edda sslmode=disable target_session_attrs=read-write "+
		"connect_timeout=2", hosts[1:], ports[1:])
	w.pool, w.bus = w.program()
	w.must(migrations.Up(w.Context(), w.pool, migrations.Options{}))
	w.exec(w.pool, ledger)
}

// program makes the pool and the bus of one process.
func (w *world) program() (*pgxpool.Pool, *bus.Bus) {
	w.Helper()
	pool, err := pgxpool.New(context.Background(), w.dsn)
	w.must(err)
	w.Cleanup(pool.Close)
	b, err := bus.New(pool, bus.Options{})
	w.must(err)
	return pool, b
}

// work runs the endpoints as one process does, until stop. A process that ends by itself fails the test.
func (w *world) work() (stop func()) {
	w.Helper()
	_, b := w.program()
	saga, err := bus.NewEndpoint(b, "accounts", bus.EndpointOptions{}, bus.Saga(accounts))
	w.must(err)
	book, err := bus.NewEndpoint(b, "ledger", bus.EndpointOptions{}, bus.HandleTx(note))
	w.must(err)
	caller, err := bus.NewEndpoint(b, "calls", bus.EndpointOptions{}, bus.Handle(w.call), bus.Handle(w.ticked))
	w.must(err)
	border, err := bus.NewRelay(b, "border", outbox.RelayOptions{}, w.forward, "deposit")
	w.must(err)
	clock, err := scheduler.New(b, scheduler.Options{Owner: "failover"},
		scheduler.Manifest{Name: "tick", When: scheduler.Every(time.Second), Message: tick{}})
	w.must(err)
	host, err := edda.NewHost(saga, book, caller, border, clock)
	w.must(err)
	w.must(host.Install(w.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		if ctx.Err() == nil && len(ended) > 0 {
			w.Error("the process ended by itself")
		}
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the process ended with %v", err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// publish publishes a deposit and returns its id when it is confirmed, however often it has to be said.
func (w *world) publish(ctx context.Context, n int) (id saga.ID, err error) {
	id = idOf(w.Name(), n)
	for {
		if _, err = w.bus.Publish(ctx, deposit{Account: fmt.Sprint("a", n%7)}, saga.WithID(id)); err == nil {
			return id, nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return id, err
		}
	}
}

func (w *world) publishAll(from, to int) {
	w.Helper()
	for n := from; n < to; n++ {
		id, err := w.publish(w.Context(), n)
		w.must(err)
		w.sent = append(w.sent, id)
	}
}

// counts returns how many messages have a row in the ledger, how many rows there are, and the sum of the accounts.
func (w *world) counts(pool *pgxpool.Pool) (ids, rows, deposits int) {
	w.Helper()
	const counting = `SELECT count(DISTINCT id), count(*),
		(SELECT coalesce(sum((state->>'Deposits')::int), 0) FROM edda.saga) FROM ledger`
	w.must(pool.QueryRow(w.Context(), counting).Scan(&ids, &rows, &deposits))
	return ids, rows, deposits
}

// hasOnce reports an error unless n messages were handled, each once by both of its endpoints.
func (w *world) hasOnce(pool *pgxpool.Pool, n int) {
	w.Helper()
	if ids, rows, deposits := w.counts(pool); ids != n || rows != n || deposits != n {
		w.Errorf("there are %d messages in %d rows and %d deposits, want %d", ids, rows, deposits, n)
	}
}

// until waits for something that is soon so.
func (w *world) until(what string, so func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	for !so() {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			ids, rows, deposits := w.counts(w.pool)
			w.Fatalf("waited until %s; there are %d messages in %d rows, and %d deposits", what, ids, rows, deposits)
		}
	}
}

// standby is a running copy of the primary that follows it. Programs connect to whichever of the two takes writes.
func (w *world) standby() *pgdev.Server {
	w.Helper()
	s := w.copied(pgdev.CopyOptions{Follow: true})
	w.must(s.Start(w.Context()))
	w.connect(w.primary, s)
	return s
}

// caughtUp waits until the standby has all that the primary has.
func (w *world) caughtUp() {
	w.Helper()
	w.until("the standby has all of it", func() bool {
		return w.ask(w.pool, "SELECT count(*) = 1 AND bool_and(replay_lsn = pg_current_wal_lsn()) "+
			"FROM pg_stat_replication")
	})
}

// handled waits until n messages are in the ledger and in the accounts.
func (w *world) handled(pool *pgxpool.Pool, n int) {
	w.Helper()
	w.until(fmt.Sprint(n, " messages are handled"), func() bool {
		ids, _, deposits := w.counts(pool)
		return ids >= n && deposits >= n
	})
}

func (w *world) exec(pool *pgxpool.Pool, sql string) {
	w.Helper()
	if _, err := pool.Exec(w.Context(), sql); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) ask(pool *pgxpool.Pool, sql string) (answer bool) {
	w.Helper()
	if err := pool.QueryRow(w.Context(), sql).Scan(&answer); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return answer
}
