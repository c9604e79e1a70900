package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// isolated returns a pool like w.pool whose transactions have this level by default.
func (w *world) isolated(level string, conns int32) *pgxpool.Pool {
	w.t.Helper()
	config := pgtest.Direct(w.t, w.pool).Config()
	config.MaxConns = conns
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

// watchLevels makes every write of a table of the schema fail unless its transaction is READ COMMITTED. A Send of one
// message and a new job are excepted: each is one INSERT, which reads nothing, and is the same at every level.
func (w *world) watchLevels() {
	w.t.Helper()
	w.exec(`CREATE OR REPLACE FUNCTION edda.watch_level() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('transaction_isolation') <> 'read committed' AND NOT (TG_OP = 'INSERT'
		AND (left(TG_TABLE_NAME, 6) = 'queue_' OR TG_TABLE_NAME = 'dead_letter_job')) THEN
			RAISE EXCEPTION '% of % in a transaction that is %', TG_OP, TG_TABLE_NAME,
			current_setting('transaction_isolation');
		END IF;
		RETURN NULL;
	END $$`)
	w.exec(`DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT c.oid::regclass FROM pg_class c WHERE c.relkind = 'r'
		AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'edda.queue'::regclass) LOOP
			EXECUTE 'CREATE OR REPLACE TRIGGER watch_level BEFORE INSERT OR UPDATE OR DELETE ON ' || t ||
				' EXECUTE FUNCTION edda.watch_level()';
		END LOOP;
	END $$`)
}

// said collects the log.
type said struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines.Write(line)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines.String()
}

// The transactions of the engine set their level, whatever the default of a database or a role is.
func TestNoTransactionOfTheEngineIsAtTheDefaultLevel(t *testing.T) {
	log := &said{}
	w := newWorld(t, bus.Options{})
	w.pool = w.isolated("serializable", 10)
	w.bus = w.newBus(bus.Options{
		Schema: w.schema, AutoInstall: true, Logger: slog.New(
			slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Events: func(e event.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	})
	soonest := bus.EndpointOptions{Poll: 20 * time.Millisecond,
		Policy: recoverability.Always(recoverability.DeadLetter())}
	ordered := soonest
	ordered.Ordered, ordered.Lease = bus.Strict, time.Second
	fails := bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return errors.New("no") })
	keyed := bus.Handle(func(*bus.Context, call) error { return nil },
		bus.KeyedBy(func(m call) string { return "key" }))
	greets := bus.HandleTx(func(*bus.Context, pgx.Tx, question) error { return nil },
		bus.KeyedBy(func(m question) string { return m.Key }))
	parts := w.partitioned(w.bus, "greeters", soon(2), greets)
	relay := w.relay(w.bus, soonRelayed(), (&abroad{}).forward)
	w.listener()
	sums := bus.Saga(tallies(saga.Optimistic, nil))
	w.install("tallies", sums)
	w.install("failing", fails)
	owners, err := bus.NewEndpoint(w.ownersBus(), "calls", ordered, keyed)
	w.must(err)
	w.must(owners.Install(t.Context()))
	endpoints := []*bus.Endpoint{w.endpoint("tallies", soonest, sums), w.endpoint("failing", soonest, fails),
		w.endpoint("calls", ordered, keyed)}
	w.must(w.partitioned(w.ownersBus(), "greeters", soon(2), greets).Install(t.Context()))
	w.installRelay()
	w.watchLevels()

	w.operate()
	stops := []func(){w.runPartitioned(parts), w.runRelay(relay)}
	for _, e := range endpoints {
		stops = append(stops, w.run(e))
	}
	w.send(add{Key: "a", N: 1}, saga.WithID(saga.ID{1}))
	w.send(call{N: 1})
	w.send(question{Key: "key"})
	if _, err := w.bus.Publish(t.Context(), paid{Order: "1"}); err != nil {
		t.Error(err)
	}
	w.must(w.bus.SendRaw(t.Context(), "calls",
		bus.RawMessage{Raw: saga.Raw{Name: call{}.Kind(), Body: []byte(`{"N":2}`)}}))
	w.must(w.bus.SendRaw(t.Context(), "*", bus.RawMessage{Raw: saga.Raw{Name: crossed{}.Kind(), Body: []byte(`{}`)}}))
	w.untilHandled(add{}.Kind(), 1)
	w.untilHandled(call{}.Kind(), 2)
	w.untilHandled(question{}.Kind(), 1)
	w.untilEmpty("border")
	w.untilEmpty("failing")
	w.operateLetters()
	for _, stop := range stops {
		stop()
	}
	if at := strings.Index(log.text(), "in a transaction that is"); at >= 0 {
		t.Errorf("the log says: %s", log.text()[max(0, at-300):min(len(log.text()), at+200)])
	}
}

// operate does the work of operators.
func (w *world) operate() {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.operator().Endpoints().SetConcurrency(ctx, "calls", 3))
	w.must(w.operator().Endpoints().Pause(ctx, "calls", "because"))
	w.must(w.operator().Endpoints().Resume(ctx, "calls"))
	w.must(w.operator().Limits().Set(ctx, "failing", 2))
	sent := w.send(told{Key: "nobody runs the listener"})
	if _, err := w.operator().Messages().Cancel(ctx, "listener", sent.ID, "because"); err != nil {
		w.t.Error(err)
	}
}

// operateLetters retries the only dead letter, and discards it when it is a dead letter again.
func (w *world) operateLetters() {
	w.t.Helper()
	ctx, letters := w.t.Context(), w.operator().DeadLetters()
	list, err := letters.List(ctx, recoverability.LetterFilter{})
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d dead letters, want 1: %v", len(list), err)
	}
	w.must(letters.Retry(ctx, list[0].Number))
	w.untilEmpty("failing")
	number, err := letters.NewJob(ctx, recoverability.Job{Action: recoverability.JobDiscard, Reason: "because"})
	if err == nil {
		_, err = letters.RunJob(ctx, number, nil)
	}
	w.must(err)
}

// A process detects a death while it begins its session. The row of the dead session changes in the meantime, which
// would be an error in a transaction with one snapshot for all of its statements.
func TestAnEndpointStartsWhileItsNeighboursSessionsChange(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) { startUnder(t, level) })
	}
}

func startUnder(t *testing.T, level string) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, paid) error { return nil })
	w.install("a", part)
	w.pool = w.isolated(level, 1)
	w.bus = w.newBus(bus.Options{Schema: w.schema, Wakeup: bus.PollOnly, Logger: slog.New(slog.DiscardHandler)})
	stop := w.start("a", bus.EndpointOptions{}, part)
	w.send(paid{})
	w.untilEmpty("a")
	// The one connection has prepared its statements: next time it waits when it executes them, and not when it
	// prepares.
	stop()
	w.exec(`INSERT INTO edda.session (id, host, pid, queues, locked, expires)
		VALUES (gen_random_uuid(), 'one', 1, '{}', false, now() - interval '1 second')`)
	tx, err := w.owner.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), w.sql("LOCK TABLE edda.session IN ACCESS EXCLUSIVE MODE"))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	stop = w.start("a", bus.EndpointOptions{}, part)
	w.until("it begins its session", func() bool {
		return w.count("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass($1)",
			w.sql("edda.session")) > 0
	})
	if _, err := tx.Exec(t.Context(), w.sql("UPDATE edda.session SET host = 'another'")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.send(paid{})
	w.untilEmpty("a")
	stop()
}
