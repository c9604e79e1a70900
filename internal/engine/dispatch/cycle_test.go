package dispatch

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// witness records the statements of a pool by their names, in their order. Safe for concurrent use.
type witness struct {
	mu    sync.Mutex
	names []string
}

func (n *witness) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	n.note(q.SQL)
	return ctx
}

func (n *witness) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (n *witness) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (n *witness) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	n.note(q.SQL)
}

func (n *witness) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// note records the name in the first line of a statement, or its first word if there is no name.
func (n *witness) note(sql string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = append(n.names, strings.Fields(strings.TrimPrefix(sql, "-- name: "))[0])
}

// story returns the statements executed since the last call.
func (n *witness) story() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.names = nil }()
	return strings.Join(n.names, " ")
}

// witnessed returns a pool of its own whose statements are recorded.
func (w *loopsWorld) witnessed() (*pgxpool.Pool, *witness) {
	w.t.Helper()
	seen, config := &witness{}, w.pool.Config()
	config.ConnConfig.Tracer = seen
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool, seen
}

// A cycle is one transaction, in one order: load, reap, queue, commit. The dispatchers are notified only after that.
func TestOrderOfACycle(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	w.expired()
	pool, seen := w.witnessed()
	s := w.schedulerOver(pool)
	term := w.term(w.scheduler(), "a")
	if c, err := s.evaluator.cycle(t.Context(), term); err != nil || c.queued != 2 || c.reaped != 1 {
		t.Errorf("%+v, %v; want 2 queued and 1 reaped", c, err)
	}
	const want = "begin open guard try_lock load savepoint reap release savepoint queue release commit begin_alone " +
		"notify commit_alone"
	if got := seen.story(); got != want {
		t.Errorf("the cycle was\n%s\nwant\n%s", got, want)
	}
}

// If a different server is in a cycle, a server rolls back before it returns, and keeps no connection.
func TestLoserOfACycleRollsBack(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	pool, seen := w.witnessed()
	first, loser := w.scheduler(), w.schedulerOver(pool)
	first.evaluator.loaded = func() {
		if c := w.cycle(loser); !c.elsewhere {
			t.Errorf("a second cycle ran beside the first: %+v", c)
		}
		if got, want := seen.story(), "begin open try_lock rollback"; got != want {
			t.Errorf("the loser's cycle was %q, want %q", got, want)
		}
		if n := pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("the loser keeps %d connections", n)
		}
	}
	if c := w.cycle(first); c.queued != 1 {
		t.Errorf("%+v, want 1 queued", c)
	}
}

// A cycle makes entries of the queue. It sends no message and dispatches nothing.
func TestCycleOnlyWritesIntent(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	w.expired()
	w.sender.before = func(_ context.Context, _ saga.Message, f saga.Firing) error {
		t.Errorf("the cycle sends a message for %s", f.Manifest)
		return nil
	}
	if c := w.cycle(w.scheduler()); c.queued != 3 || c.reaped != 1 {
		t.Errorf("%+v, want 3 queued and 1 reaped", c)
	}
	n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'queued' AND attempt = 0 AND message_id IS NULL")
	if n != 3 {
		t.Errorf("%d entries wait for their dispatch, want 3", n)
	}
	if n := w.count("SELECT count(*) FROM :schema.run_attempt WHERE outcome IS NULL"); n != 0 {
		t.Errorf("the cycle wrote %d attempts", n)
	}
}

// The lock belongs to the transaction. A session that returns to its pool never holds it, whether its cycle committed
// or failed.
func TestLockOfACycleEndsWithIt(t *testing.T) {
	const held = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'
		AND objsubid = 1
		AND database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
		AND (classid::bigint << 32) | objid::bigint = $1`
	for name, c := range map[string]struct {
		spoil string
		fails bool
	}{
		"commits": {},
		"fails": {`CREATE FUNCTION :schema.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'not now'; END $$;
			CREATE TRIGGER refuse BEFORE INSERT ON :schema.run FOR EACH ROW EXECUTE FUNCTION :schema.refuse()`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.hourlies(1)
			if c.spoil != "" {
				w.exec(c.spoil)
			}
			key, during := lockKey(w.schema), 0
			s := w.scheduler()
			s.evaluator.loaded = func() { during = w.count(held, key) }
			if _, err := s.evaluator.cycle(t.Context(), noTerm); (err != nil) != c.fails {
				t.Errorf("the cycle ended with: %v", err)
			}
			if during != 1 {
				t.Errorf("the lock of the cycle's key is held %d times in the cycle, want once", during)
			}
			if n := w.count(held, key); n != 0 {
				t.Error("the lock is held after the cycle")
			}
		})
	}
}

// A manifest becomes due after a cycle has loaded the due manifests, and before the cycle reads the next due time.
func TestManifestThatBecomesDueAfterTheLoadIsNotOverlooked(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	w.exec("UPDATE :schema.manifest SET due = clock_timestamp() + interval '2 s'")
	e := w.scheduler().evaluator
	c, err := e.cycle(t.Context(), noTerm)
	if err != nil || c.loaded != 0 {
		t.Fatalf("the cycle loaded %d manifests, and ended with: %v", c.loaded, err)
	}
	w.await("the manifest is due",
		func() bool {
			return w.count("SELECT count(*) FROM :schema.manifest WHERE due <= clock_timestamp()") == 1
		})
	if wait := e.untilDue(t.Context(), c); wait != 0 {
		t.Errorf("the next cycle comes in %v, want at once", wait)
	}
}
