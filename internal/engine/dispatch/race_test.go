package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgtest"
)

const evaluators = 8

// Eight evaluators and a thousand due manifests: one run for each, with all guards, without each of them, and without
// both.
//
// Row X1.
func TestEveryGuardMayFailAndNothingIsDoubled(t *testing.T) {
	for name, off := range map[string]struct{ lock, lease bool }{
		"both on": {}, "lock off": {lock: true}, "lease off": {lease: true}, "both off": {lock: true, lease: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.hourlies(1000)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			for range evaluators {
				s := w.scheduler(func(o *Options) { o.Evaluate, o.Lease.Lease = 20*time.Millisecond, 10*time.Second })
				if off.lock {
					s.unlocked()
				}
				evaluate := s.keeper.Run
				if off.lease {
					evaluate = s.unled
				}
				all.Go(func() {
					if err := evaluate(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			w.await("every manifest is queued",
				func() bool { return w.count("SELECT count(*) FROM :schema.manifest WHERE run IS NULL") == 0 })
			cancel()
			all.Wait()
			if n := w.count("SELECT count(*) FROM :schema.run"); n != 1000 {
				t.Errorf("%d runs, want 1000", n)
			}
			w.onceEach()
		})
	}
}

// unlocked gives the engine a lock key of its own, so that the lock keeps no other engine out.
func (e *Engine) unlocked() { e.evaluator.lockKey = rand.Int64() }

// unled evaluates and reconciles without the lease.
func (e *Engine) unled(ctx context.Context) error { return e.Lead(ctx, noTerm) }

// All evaluators have loaded the due manifests before the first of them writes, and they write one after the other.
// The indexes decide. Without them there are eight runs for each manifest, so this test can detect the race.
//
// Row X1.
func TestUniqueIndexesAloneKeepServersApart(t *testing.T) {
	for name, c := range map[string]struct {
		drop string
		want int
	}{
		"with the indexes":    {"", 1000},
		"without the indexes": {"DROP INDEX :schema.run_entry_idx; DROP INDEX :schema.run_due_idx", 1000 * evaluators},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.hourlies(1000)
			if c.drop != "" {
				w.exec(c.drop)
			}
			var (
				loaded sync.WaitGroup
				turn   sync.Mutex
			)
			loaded.Add(evaluators)
			w.atOnce(evaluators, func(int) error {
				s := w.scheduler()
				s.unlocked()
				s.evaluator.loaded = func() {
					loaded.Done()
					loaded.Wait()
					turn.Lock()
				}
				defer turn.Unlock()
				_, err := s.evaluator.cycle(t.Context(), noTerm)
				return err
			})
			if n := w.count("SELECT count(*) FROM :schema.run"); n != c.want {
				t.Errorf("%d runs, want %d", n, c.want)
			}
			if n := w.count("SELECT count(*) FROM :schema.manifest WHERE due > now() AND run IS NOT NULL"); n != 1000 {
				t.Errorf("%d manifests have their next due time, want 1000", n)
			}
		})
	}
}

// An evaluator decides by rows that a second evaluator has changed since. Each unique index keeps it from making a
// second run: of the same due time, or beside a run that is not dispatched yet.
func TestEachUniqueIndexKeepsASecondRunOut(t *testing.T) {
	for name, meanwhile := range map[string]func(w *loopsWorld, other *Engine){
		"the due time is dispatched": func(w *loopsWorld, other *Engine) { w.cycle(other); w.drain(other) },
		"another due time is queued": func(w *loopsWorld, other *Engine) {
			w.exec("UPDATE :schema.manifest SET due = due - interval '7 seconds'")
			w.cycle(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.hourlies(1)
			late, other := w.scheduler(), w.scheduler()
			late.unlocked()
			late.evaluator.loaded = func() { meanwhile(w, other) }
			w.cycle(late)
			if n := w.count("SELECT count(*) FROM :schema.run"); n != 1 {
				t.Errorf("%d runs, want 1", n)
			}
		})
	}
}

// An evaluator that decided long ago does not undo later changes of others.
func TestStaleDecisionTurnsNothingBack(t *testing.T) {
	w := loopsOpen(t)
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, due, overlap) VALUES
		('m', '{"rule":{"kind":"every","every":1000000000},"misfire":"all"}', 'ping', '{}',
		now() - interval '1 minute', true)`)
	stale, other := w.scheduler(), w.scheduler()
	stale.unlocked()
	stale.evaluator.loaded = func() {
		for range 3 {
			w.cycle(other)
			w.drain(other)
		}
	}
	if c := w.cycle(stale); c.queued != 0 {
		t.Errorf("the stale decision queued %d runs", c.queued)
	}
	w.onceEach()
	if got := w.states("m"); got != "schedule active 1, schedule active 1, schedule active 1" {
		t.Errorf("m: %s", got)
	}
	if c := w.cycle(other); c.queued != 1 || w.count("SELECT count(*) FROM :schema.run WHERE due = (SELECT "+
		"min(due) + interval '3 seconds' FROM :schema.run)") != 1 {
		t.Errorf("%+v, want the fourth due time", c)
	}
}

// The same for a follower. No index tells its due times apart.
func TestStaleDecisionFiresNoFollowerAgain(t *testing.T) {
	w := loopsOpen(t)
	w.follower()
	stale, other := w.scheduler(), w.scheduler()
	stale.unlocked()
	stale.evaluator.loaded = func() {
		w.cycle(other)
		w.drain(other)
	}
	if c := w.cycle(stale); c.queued != 0 {
		t.Errorf("the stale decision queued %d runs", c.queued)
	}
	if got := w.states("child"); got != "dependent active 1" {
		t.Errorf("child: %s", got)
	}
}

// follower inserts a manifest named child that is due since its parent succeeded.
func (w *loopsWorld) follower() {
	w.t.Helper()
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, due) VALUES ('parent', $1, 'ping', '{}',
		now() - interval '1 second')`, hourly)
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, parent, follows)
		VALUES ('child', '{"rule":{"kind":"after","parent":"parent"}}', 'pong', '{}', 'parent', true)`)
	s := w.scheduler()
	w.cycle(s)
	w.drain(s)
	w.end("parent", "succeeded")
}

// A cycle is skipped while a different server is in one, with one line at Debug and no open transaction. A cycle logs
// its begin and end at Debug.
func TestSecondCycleIsSkipped(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	first := w.scheduler()
	var book, quiet logbook
	first.evaluator.loaded = func() {
		for _, s := range []*Engine{
			w.scheduler(func(o *Options) { o.Logger = book.logger(slog.LevelDebug) }),
			w.scheduler(func(o *Options) { o.Logger = quiet.logger(slog.LevelInfo) }),
		} {
			c := w.cycle(s)
			if !c.elsewhere {
				t.Errorf("a second cycle ran beside the first: %+v", c)
			}
			if wait := s.evaluator.untilDue(t.Context(), c); wait != s.core.options.Evaluate {
				t.Errorf("whoever was skipped waits %v, want %v", wait, s.core.options.Evaluate)
			}
		}
	}
	if c := w.cycle(first); c.queued != 1 {
		t.Errorf("%+v, want 1 queued", c)
	}
	for log, level := range map[*logbook]slog.Level{&book: slog.LevelDebug, &quiet: slog.LevelInfo} {
		if c := w.cycle(w.scheduler(func(o *Options) { o.Logger = log.logger(level) })); c.elsewhere {
			t.Error("the lock outlived its cycle")
		}
	}
	for _, line := range []string{"another server is evaluating, this cycle is skipped", "an evaluation cycle begins",
		"an evaluation cycle is complete"} {
		if !book.has(`level=DEBUG msg="edda: ` + line) {
			t.Errorf("%q is not said at Debug", line)
		}
	}
	if quiet.has("evaluat") {
		t.Error("cycles are told of at Info")
	}
}

// A term that was followed by a new one writes nothing any more.
func TestCycleOfAnOldTermIsFenced(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	s := w.scheduler()
	old := w.term(s, "a")
	w.exec("UPDATE :schema.lease SET expires = now() - interval '1 second'")
	now := w.term(s, "b")
	if _, err := s.evaluator.cycle(t.Context(), old); !errors.Is(err, lease.ErrFenced) {
		t.Errorf("a cycle of the old term: %v, want ErrFenced", err)
	}
	if err := s.sweeper.sweep(t.Context(), old); !errors.Is(err, lease.ErrFenced) {
		t.Errorf("a sweep of the old term: %v, want ErrFenced", err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run"); n != 0 {
		t.Errorf("it queued %d runs", n)
	}
	if c, err := s.evaluator.cycle(t.Context(), now); err != nil || c.queued != 1 {
		t.Errorf("the new term: %+v, %v", c, err)
	}
}

func (w *loopsWorld) term(s *Engine, holder string) lease.Term {
	w.t.Helper()
	t, ok, err := s.core.leases.Acquire(
		w.t.Context(),
		w.pool,
		lease.Bid{Name: LeaseName, Holder: holder, Lease: time.Hour},
	)
	if err != nil || !ok {
		w.t.Fatalf("%s did not get the lease: %v", holder, err)
	}
	return t
}

// A duplicate and poison in one cycle: the others are queued, and the poison is skipped with its due time kept.
//
// Row X3.
func TestOneBadManifestDoesNotStopTheOthers(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(10)
	w.exec(`INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, ended)
		SELECT gen_random_uuid(), id, 'backfill', 'succeeded', due, due, now() FROM :schema.manifest WHERE name = 'm3'`)
	w.exec(`UPDATE :schema.manifest SET definition = '{"rule":{"kind":"nonsense"}}', due = due - interval '1 hour'
		WHERE name = 'm5'`)
	w.exec(`UPDATE :schema.manifest SET definition = '[1]' WHERE name = 'm6'`)
	w.exec(`ALTER TABLE :schema.run ADD CHECK (priority <> 7); UPDATE :schema.manifest SET priority = 7
		WHERE name = 'm8'`)
	var book logbook
	s := w.scheduler(func(o *Options) { o.Logger = book.logger(slog.LevelDebug) })
	if c := w.cycle(s); c.loaded != 10 || c.queued != 6 {
		t.Errorf("%+v, want 10 loaded and 6 queued", c)
	}
	for _, bad := range []string{"m5", "m6", "m8"} {
		if !book.has("level=ERROR msg=\"edda: a manifest cannot be evaluated, and is skipped for a while\" " +
			"manifest=" + bad) {
			t.Errorf("nothing is said about %s", bad)
		}
	}
	if !book.has("level=DEBUG msg=\"edda: a scheduled run exists already, or its manifest is locked or has " +
		"changed\" manifest=m3") {
		t.Error("nothing is said of the entry that was there")
	}
	if n := w.count("SELECT count(*) FROM :schema.manifest WHERE due < now() AND name IN ('m5', 'm6', 'm8')"); n != 3 {
		t.Errorf("%d of the bad ones kept their due times, want 3", n)
	}
	if n := w.count("SELECT count(*) FROM :schema.manifest WHERE due > now() AND name = 'm3' AND run IS NULL"); n != 1 {
		t.Error("the one with a duplicate does not go on with its next due time")
	}
	if c := w.cycle(s); c.loaded != 0 {
		t.Errorf("%+v: the bad ones are at the head again", c)
	}
	if c := w.cycle(w.scheduler()); c.loaded != 3 {
		t.Errorf("%+v: another server does not try them", c)
	}
	w.onceEach()
}

// A manifest that was changed, paused or deleted between load and decision is left alone.
func TestDecisionAboutWhatHasChangedIsDropped(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(4)
	s := w.scheduler()
	s.evaluator.loaded = func() {
		w.exec("UPDATE :schema.manifest SET version = version + 1 WHERE name = 'm1'")
		w.exec("UPDATE :schema.manifest SET live = false WHERE name = 'm2'")
		w.exec("DELETE FROM :schema.manifest WHERE name = 'm3'")
	}
	if c := w.cycle(s); c.queued != 1 || w.states("m4") != "schedule queued 0" {
		t.Errorf("%+v, want m4 alone", c)
	}
}

// A manifest that a different transaction has locked is left for the next cycle: the cycle does not wait.
func TestCycleWaitsForNobody(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), w.schema.Render(
		"UPDATE :schema.manifest SET reason = 'x' WHERE name = 'm1'")); err != nil {
		t.Fatal(err)
	}
	s := w.scheduler()
	if c := w.cycle(s); c.queued != 1 || s.evaluator.untilDue(t.Context(), c) != lockedPause {
		t.Errorf("%+v, want m2 queued and m1 soon", c)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := w.cycle(s); c.queued != 1 {
		t.Errorf("%+v, want m1 queued", c)
	}
}

// The key must stay the same in all versions of the program that run against one database.
func TestLockKeyNeverChanges(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int64{"edda": -5051390665953983684, "other": -2373684166251028000} {
		schema, err := pg.ParseSchema(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := lockKey(schema); got != want {
			t.Errorf("the key of schema %s is %d, want %d", name, got, want)
		}
	}
}

func TestStatementsOfTheLoopsReachTheirRowsByIndex(t *testing.T) {
	w := loopsOpen(t)
	const many = 20_000
	pgtest.Probes{
		SQL: pg.Load(statements, w.schema),
		Statements: map[string][]string{
			"load": {"10", "{}"}, "reap": {"10"}, "next_due": {"now"},
			"promote": {"10"}, "next_ready": {}, "active": {"50"}, "pick": {"50"},
			"lock_groups": {"{1}"}, "rooms": {"{1}"}, "lost": {"10", "1000000"}, "clean": {"1000000", "10"},
			"claim": {"SELECT coalesce(array_agg(id)::text, '{}') FROM (SELECT id FROM :schema.run " +
				"WHERE state = 'queued' LIMIT 5) x", "{0,0,0,0,0}"},
			"sent": {"SELECT coalesce(array_agg(id)::text, '{}') FROM (SELECT id FROM :schema.run " +
				"WHERE state = 'queued' LIMIT 5) x", "SELECT coalesce(array_agg(id)::text, '{}') FROM (SELECT id " +
				"FROM :schema.run LIMIT 5) x"},
			"let_go": {"SELECT coalesce(array_agg(id)::text, '{}') FROM (SELECT id FROM :schema.run " +
				"WHERE state = 'queued' LIMIT 5) x"},
			"refuse": {"SELECT coalesce(min(id::text), gen_random_uuid()::text) FROM (SELECT id FROM " +
				":schema.run WHERE state = 'queued' LIMIT 1) x", "0", "0", "x", "5", "1", "1", "1"},
			"lock_manifest_of": {"SELECT coalesce(min(id::text), gen_random_uuid()::text) FROM (SELECT id FROM " +
				":schema.run LIMIT 1) x"},
			"remind": {"50", "0"}, "empty_orphan": {"SELECT now()::text", "10"}, "drop_orphan": {"2000-01-01", "10"},
			"forgotten_before": {"1000000", "1000000", "10000"},
			"queue": {"{1}", "{1}", "SELECT array[now()]::text", "SELECT array[gen_random_uuid()]::text",
				"SELECT array[now()]::text", "SELECT array[now()]::text", "SELECT array[now()]::text", "{0}"},
		},
		Settings: indexSettings,
		Fill: fmt.Sprintf(`
			INSERT INTO :schema.manifest (name, definition, kind, body, due, orphaned_at)
			SELECT 'm' || n, '{}', 'ping', '{}', now() + (n - 20) * interval '1 minute', CASE
			WHEN n %% 1000 = 0 THEN now() - interval '1 day' END
			FROM generate_series(1, %[1]d) n;
			INSERT INTO :schema.manifest (name, definition, kind, body, follows, parent, answered)
			SELECT 'f' || n, '{}', 'ping', '{}', true, 'm' || n, -1 FROM generate_series(1, %[1]d / 10) n;
			INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, deadline, beat, ended)
			SELECT gen_random_uuid(), m.id, m.id %% 4, 'manual', (array['waiting', 'queued', 'active',
			'succeeded'])[m.id %% 4 + 1], now(), now() + (m.id - 20) * interval '1 minute',
				now() + (m.id - 20) * interval '1 minute', now() + (m.id - 20) * interval '1 minute', CASE
				WHEN m.id %% 4 = 3 THEN now() + (m.id - 20) * interval '1 minute' END
			FROM :schema.manifest m`, many),
		MaxRows: 250,
	}.Check(t, w.pool, w.schema)
}

// indexSettings are the settings of the statement open.
var indexSettings = []string{
	"SET LOCAL jit = off", "SET LOCAL enable_seqscan = off", "SET LOCAL enable_hashjoin = off",
	"SET LOCAL enable_mergejoin = off", "SET LOCAL enable_bitmapscan = off",
}
