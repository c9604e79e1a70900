package bus_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// process returns a second bus on the schema of w with its own pool: to the database, a second process. Its events go
// to w as well.
func (w *world) process(dsn string, o bus.Options) *bus.Bus {
	w.t.Helper()
	pool := w.openPool(pgdev.PooledDSN(w.t, dsn))
	o.Wakeup = pgtest.IfPooled(bus.PollOnly, o.Wakeup)
	o.Schema, o.AutoInstall, o.Logger = w.schema, true, slog.New(slog.DiscardHandler)
	o.Events = func(e event.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	b, err := bus.New(pool, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// proxied is a process whose connections pass through a proxy that can break or pause them.
func (w *world) proxied() (*bus.Bus, *faultproxy.Proxy) {
	w.t.Helper()
	proxy, dsn := pgtest.Proxy(w.t)
	return w.process(dsn, bus.Options{}), proxy
}

// startOn makes an endpoint on a bus other than that of w, and runs it.
func (w *world) startOn(b *bus.Bus, name string, o bus.EndpointOptions, parts ...bus.Part) (stop func()) {
	w.t.Helper()
	e, err := bus.NewEndpoint(b, name, o, parts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(e)
}

// install makes the queue of an endpoint that does not run: the messages sent to it stay and can be counted.
func (w *world) install(name string, parts ...bus.Part) *bus.Endpoint {
	w.t.Helper()
	e := w.endpoint(name, bus.EndpointOptions{}, parts...)
	w.makeQueue(name)
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// begin opens a concurrent transaction, which ends with the test at the latest.
func (w *world) begin() pgx.Tx {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.BeginTx(w.t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		w.t.Fatal(err)
	}
	return tx
}

func (w *world) execTx(tx pgx.Tx, sql string, args ...any) {
	w.t.Helper()
	if _, err := tx.Exec(w.t.Context(), w.sql(sql), args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) commit(tx pgx.Tx) {
	w.t.Helper()
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// untilWaiting waits until a statement of this schema waits for a lock.
func (w *world) untilWaiting(statement string) {
	w.t.Helper()
	w.until("a worker waits in "+statement, func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND query LIKE '-- name: ' || $1 || '%' AND position($2 IN query) > 0`, statement, w.schema) > 0
	})
}

// hurry makes everything in the queue due.
func (w *world) hurry(endpoint string) {
	w.t.Helper()
	w.exec(`UPDATE ` + w.queue(endpoint) + ` SET due = now() WHERE due > now()`)
}

// untilEmptyHurrying waits until the queue is empty, and makes delayed messages due at once.
func (w *world) untilEmptyHurrying(endpoint string) {
	w.t.Helper()
	table := w.queue(endpoint)
	w.until("queue "+endpoint+" is empty", func() bool {
		w.exec(`UPDATE ` + table + ` SET due = now() WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM ` + table + ` WHERE due > now() FOR UPDATE SKIP LOCKED))`)
		return w.count(`SELECT count(*) FROM `+table) == 0
	})
}

func (w *world) rows(endpoint string) int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM ` + w.queue(endpoint))
}

// want compares a number of the database with the expected number.
func (w *world) want(want int, sql string, args ...any) {
	w.t.Helper()
	if got := w.count(sql, args...); got != want {
		w.t.Errorf("%s: %d, want %d\nevents: %s", sql, got, want, w.story())
	}
}

func (w *world) wantText(want, sql string, args ...any) {
	w.t.Helper()
	if got := w.text(sql, args...); got != want {
		w.t.Errorf("%s: %q, want %q\nevents: %s", sql, got, want, w.story())
	}
}

// raw writes a message as a program in a different language would, with any header.
func (w *world) raw(kind, body, header, endpoint string) {
	w.t.Helper()
	w.exec(`SELECT edda.send(kind => $1, body => convert_to($2, 'UTF8'), header => $3::json, endpoint => $4)`, kind,
		body, header, endpoint)
}

// await receives one value from a channel.
func await[T any](w *world, what string, from <-chan T) (value T) {
	w.t.Helper()
	deadline := time.NewTimer(pgdev.Patience(20 * time.Second))
	defer deadline.Stop()
	select {
	case value = <-from:
	case <-deadline.C:
		w.t.Fatalf("waited in vain for %s\nevents: %s", what, w.story())
	}
	return value
}

// gate stops the first caller until it is opened, and signals when that caller has come.
type gate struct {
	once   chan struct{}
	came   chan struct{}
	opened chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{once: make(chan struct{}, 1), came: make(chan struct{}), opened: make(chan struct{})}
	g.once <- struct{}{}
	t.Cleanup(g.open)
	return g
}

func (g *gate) pass() {
	select {
	case <-g.once:
		close(g.came)
		<-g.opened
	default:
	}
}

func (g *gate) open() {
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// add is added to a tally; each step sends the new sum.
type add struct {
	Key string
	N   int
}
type ask struct{ Key string }
type finish struct{ Key string }
type told struct {
	Key string
	Sum int
}

func (add) Kind() string    { return "tally.add" }
func (ask) Kind() string    { return "tally.ask" }
func (finish) Kind() string { return "tally.finish" }
func (told) Kind() string   { return "tally.told" }

type tally struct{ Sum int }

// tallies is a saga that adds, sends sums and ends. before, if not nil, runs in each step before it reads its state.
func tallies(store saga.Store, before func(m saga.Message)) *saga.Definition {
	return talliesOf(saga.Options{Store: store}, before)
}

func talliesOf(o saga.Options, before func(m saga.Message)) *saga.Definition {
	step := func(m saga.Message) {
		if before != nil {
			before(m)
		}
	}
	return saga.Define("tally", o,
		saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
			step(m)
			s.Sum += m.N
			ctx.Send(told{Key: m.Key, Sum: s.Sum})
			return nil
		}),
		saga.Handles(func(m ask) string { return m.Key }, func(s *tally, ctx *saga.Context, m ask) error {
			step(m)
			ctx.Send(told{Key: m.Key, Sum: s.Sum})
			return nil
		}),
		saga.Handles(func(m finish) string { return m.Key }, func(s *tally, ctx *saga.Context, m finish) error {
			step(m)
			ctx.Send(told{Key: m.Key, Sum: s.Sum})
			ctx.Complete()
			return nil
		}),
	)
}

// listener is the endpoint that receives the sums of tallies; it does not run, so its queue shows the sent messages.
func (w *world) listener() {
	w.t.Helper()
	w.install("listener", bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
}

// toldSums returns the sums sent, in order.
func (w *world) toldSums() string {
	w.t.Helper()
	return w.text(`SELECT coalesce(string_agg(convert_from(body, 'UTF8')::json ->> 'Sum', ' ' ORDER BY id), '') FROM ` +
		w.queue("listener"))
}

func (w *world) sum(key string) int {
	w.t.Helper()
	return w.count(`SELECT coalesce((SELECT (state ->> 'Sum')::int FROM edda.saga WHERE saga = 'tally' AND key = $1),
		-1)`, key)
}
