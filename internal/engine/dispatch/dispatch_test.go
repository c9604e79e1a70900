package dispatch

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// countingSends is a tableSender.before that counts the sends.
func countingSends(n *int, then func(n int) error) func(context.Context, saga.Message, saga.Firing) error {
	var mu sync.Mutex
	return func(context.Context, saga.Message, saga.Firing) error {
		mu.Lock()
		defer mu.Unlock()
		*n++
		return then(*n)
	}
}

// Two servers have the same list of entries. Each entry is dispatched once, however the entries are split.
func TestTwoServersWithOneListDispatchEachOnce(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 3, 0)
	a, b := w.scheduler(), w.scheduler()
	picked, err := a.dispatcher.pick(t.Context())
	if err != nil || len(picked) != 3 {
		t.Fatalf("picked %d, %v", len(picked), err)
	}
	orders := [][]candidate{picked, {picked[2], picked[1], picked[0]}}
	w.atOnce(2, func(i int) error {
		for _, c := range orders[i] {
			if _, err := []*Engine{a, b}[i].dispatcher.dispatchAll(t.Context(), []candidate{c}); err != nil {
				return err
			}
		}
		return nil
	})
	w.onceEach()
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
}

// An entry that a different server holds is skipped without waiting, and without an error.
func TestEntryInOtherHandsIsSkipped(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 2, 0)
	var book logbook
	a, b := w.scheduler(), w.scheduler(func(o *Options) { o.Logger = book.logger(slog.LevelDebug) })
	picked, err := a.dispatcher.pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	skipped := `level=DEBUG msg="edda: a run is skipped: another server has claimed it, or it was deleted" run=` +
		picked[0].id.String()
	var begun atomic.Bool
	w.sender.before = func(ctx context.Context, _ saga.Message, _ saga.Firing) error {
		if begun.CompareAndSwap(false, true) {
			if n, err := b.dispatcher.dispatchAll(ctx, picked); n != 0 || err != nil {
				t.Errorf("%d were dispatched that another server holds, %v", n, err)
			}
			if !book.has(skipped) {
				t.Error("nothing is said at Debug of an entry that another server holds")
			}
		}
		return nil
	}
	if n, err := a.dispatcher.dispatchAll(t.Context(), picked); n != 2 || err != nil {
		t.Errorf("dispatched %d, %v", n, err)
	}
	if n, err := b.dispatcher.dispatchAll(t.Context(), picked); n != 0 || err != nil {
		t.Errorf("%d were dispatched a second time, %v", n, err)
	}
	w.onceEach()
}

// A run that cannot be sent waits and is dead in the end; it holds its manifest. The others of its transaction are
// sent.
func TestWhatCannotBeSentGoesAloneAndDies(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(5)
	w.exec("UPDATE :schema.manifest SET kind = 'unknown' WHERE name = 'm3'")
	w.sender.before = func(_ context.Context, m saga.Message, _ saga.Firing) error {
		if m.Kind() == "unknown" {
			return errRefused
		}
		return nil
	}
	s := w.scheduler()
	w.cycle(s)
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 4 {
		t.Errorf("%d messages, want those of the four others", n)
	}
	if got := w.states("m3"); got != "schedule waiting 0" {
		t.Errorf("m3: %s", got)
	}
	w.drain(s)
	if got := w.text("SELECT state || ' ' || refused || ' ' || (error LIKE '%refused%') FROM :schema.run WHERE " +
		"state = 'dead'"); got != "dead 5 true" {
		t.Errorf("m3: %s", got)
	}
	n := w.count("SELECT count(*) FROM :schema.manifest WHERE held IS NOT NULL AND run IS NULL AND name = 'm3'")
	if n != 1 {
		t.Error("its manifest is not held")
	}
	w.onceEach()
}

// A Sender breaks the transaction: the others are sent again, each once. A dispatch sets the count of refusals to 0:
// the Sender may refuse each attempt equally often.
func TestRefusalsAreCountedInARow(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	w.exec("UPDATE :schema.manifest SET retries = 1, retry_delay = '0'")
	refuses := true
	w.sender.before = func(context.Context, saga.Message, saga.Firing) error {
		if refuses {
			return errRefused
		}
		return nil
	}
	s := w.scheduler(func(o *Options) { o.MaxDispatchAttempts = 2 })
	w.cycle(s)
	refused := func(want string) {
		t.Helper()
		refuses = true
		w.await("the Sender has refused it", func() bool {
			if _, err := s.dispatcher.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.text("SELECT (error <> '')::text FROM :schema.run") == "true"
		})
		if got := w.text("SELECT state || ' ' || attempt || ' ' || refused FROM :schema.run"); got != want {
			t.Errorf("the run is %s, want %s", got, want)
		}
	}
	refused("waiting 0 1")
	refuses = false
	w.drain(s)
	w.end("m1", "failed")
	w.exec("UPDATE :schema.run SET error = ''")
	refused("waiting 1 1")
}

func TestBrokenTransactionIsNobodyElsesTrouble(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(5)
	w.exec("UPDATE :schema.manifest SET kind = 'poison' WHERE name = 'm3'")
	w.exec("ALTER TABLE :schema.sent_message ADD CHECK (kind <> 'poison')")
	s := w.scheduler(func(o *Options) { o.MaxDispatchAttempts = 1 })
	w.cycle(s)
	w.drain(s)
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 4 || w.states("m3") != "schedule dead 0" {
		t.Errorf("%d messages, want 4; m3: %s", n, w.states("m3"))
	}
	w.onceEach()
}

// No run of a paused group is dispatched. Queued runs of a paused manifest are: they were triggered by hand, or due
// before.
func TestPausedGroupIsNotDispatched(t *testing.T) {
	w := loopsOpen(t)
	group := w.group("g", 0, false, 0)
	w.queued("grouped", 2, group)
	w.queued("paused", 2, 0)
	w.exec("UPDATE :schema.manifest_group SET paused_at = now()")
	w.exec("UPDATE :schema.manifest SET paused_at = now(), live = false WHERE name = 'paused'")
	s := w.scheduler()
	if picked, err := s.dispatcher.pick(t.Context()); err != nil || len(picked) != 2 {
		t.Errorf("a look finds %d runs, %v: want the two of the paused manifest", len(picked), err)
	}
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT count(*) FROM :schema.sent_message WHERE manifest = 'paused'"); n != 2 ||
		w.count("SELECT count(*) FROM :schema.sent_message") != 2 {
		t.Errorf("%d messages of the paused manifest, want 2 and no others", n)
	}
	w.exec("UPDATE :schema.manifest_group SET paused_at = NULL")
	w.drain(s)
	w.onceEach()
}

// A group that is paused between pick and claim dispatches nothing.
func TestGroupThatIsPausedAfterTheLookIsNotDispatched(t *testing.T) {
	w := loopsOpen(t)
	w.queued("grouped", 2, w.group("g", 0, false, 0))
	s := w.scheduler()
	picked, err := s.dispatcher.pick(t.Context())
	if err != nil || len(picked) != 2 {
		t.Fatalf("picked %d, %v", len(picked), err)
	}
	w.exec("UPDATE :schema.manifest_group SET paused_at = now()")
	if n, err := s.dispatcher.dispatchAll(t.Context(), picked); n != 0 || err != nil {
		t.Errorf("dispatched %d, %v", n, err)
	}
	w.exec("UPDATE :schema.manifest_group SET paused_at = NULL")
	w.drain(s)
	w.onceEach()
}

// One group has a hundred thousand runs, and another has three. The small one is in the first pass, and the order is
// as documented.
func TestNoGroupStarves(t *testing.T) {
	w := loopsOpen(t)
	large, small := w.group("large", 0, false, 5), w.group("small", 0, false, 0)
	w.queued("large", 100_000, large)
	w.queued("small", 3, small)
	w.queued("alone", 3, 0)
	s := w.scheduler()
	began := time.Now()
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the pass took %v", time.Since(began))
	if got := w.text(`SELECT string_agg(manifest || ' ' || n, ', ' ORDER BY manifest) FROM (SELECT manifest,
		count(*) AS n FROM :schema.sent_message GROUP BY 1) x`); got != "alone 3, large 67, small 3" {
		t.Errorf("the first pass: %s", got)
	}
}

func TestOrderOfDispatch(t *testing.T) {
	t.Parallel()
	var all []candidate
	add := func(group int32, n int) {
		for i := range n {
			all = append(all, candidate{id: NewRunID(), group: group, ready: time.Unix(int64(1000*group)+int64(i), 0)})
		}
	}
	add(3, 50)
	add(1, 50)
	add(2, 1)
	groups := func(picked []candidate) string {
		var text []string
		for _, c := range picked {
			text = append(text, fmt.Sprint(c.group))
		}
		return strings.Join(text, "")
	}
	for room, want := range map[int]string{1: "1", 2: "12", 3: "312", 8: "33333312", 101: groups(all)} {
		got := share(all, room)
		if groups(got) != want || !slices.IsSortedFunc(got, func(a, b candidate) int {
			return slices.Index(all, a) - slices.Index(all, b)
		}) {
			t.Errorf("room %d: %s, want %s in order", room, groups(got), want)
		}
	}
}

// Eight servers and a soft cap: each counts on its own, so the cap may be exceeded by a batch for each of the others,
// and not by more.
func TestSoftCapIsExceededByABatchForEachOtherServer(t *testing.T) {
	w := loopsOpen(t)
	const servers, most = 4, 10
	w.queued("q", 1000, w.group("g", most, false, 0))
	w.sender.before = nil
	var counted sync.WaitGroup
	counted.Add(servers)
	w.atOnce(servers, func(int) error { // all have counted before the first of them dispatches
		s := w.scheduler()
		picked, err := s.dispatcher.pick(t.Context())
		counted.Done()
		counted.Wait()
		if err == nil {
			_, err = s.dispatcher.dispatchAll(t.Context(), picked)
		}
		return err
	})
	active := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'")
	if active < most || active > most+(servers-1)*min(most, batchRuns) {
		t.Errorf("%d runs are active: want %d to %d", active, most, most+(servers-1)*min(most, batchRuns))
	}
	s := w.scheduler()
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != active {
		t.Errorf("%d more were dispatched over a full cap", n-active)
	}
}

func TestGlobalCapCountsEveryRun(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 30, w.group("g", 0, false, 0))
	w.queued("r", 30, 0)
	s := w.scheduler(func(o *Options) { o.MaxActive = 20 })
	for range 3 {
		if _, err := s.dispatcher.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != 20 {
		t.Errorf("%d runs are active, want 20", n)
	}
}

// Eight dispatchers, a strict cap of three, and runs that end at the same time: never more than three are active.
func TestStrictCapIsNeverExceeded(t *testing.T) {
	w := loopsOpen(t)
	const servers, most, runs = 8, 3, 60
	w.queued("q", runs, w.group("g", most, true, 0))
	// The trigger counts the active runs whenever a run becomes active: in the order of commits, since the group's
	// row is locked.
	w.exec(`CREATE TABLE :schema.seen (active int); GRANT ALL ON :schema.seen TO PUBLIC;
		CREATE FUNCTION :schema.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO :schema.seen SELECT count(*) FROM :schema.run WHERE state = 'active'; RETURN NULL; END $$;
		CREATE TRIGGER look AFTER UPDATE ON :schema.run FOR EACH STATEMENT EXECUTE FUNCTION :schema.look()`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range servers {
		s := w.scheduler(func(o *Options) { o.MaxConcurrentDispatch = 2 })
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.dispatcher.pass(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	w.await("all runs end", func() bool {
		if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n > most {
			t.Errorf("%d runs are active", n)
		}
		w.exec(`SELECT :schema.run_end(ARRAY[id], ARRAY[attempt], '{succeeded}', '{""}') FROM :schema.run
			WHERE state = 'active' ORDER BY id LIMIT 1`)
		return t.Failed() || w.count("SELECT count(*) FROM :schema.run WHERE state <> 'succeeded'") == 0
	})
	cancel()
	all.Wait()
	if n := w.count("SELECT max(active) FROM :schema.seen"); n != most {
		t.Errorf("at most %d were active at a time, want %d", n, most)
	}
	w.onceEach()
}

// Fifty entries and a slow Sender: ten are sent at the same time if ten are allowed, and one if one is allowed.
//
// Row X17.
func TestSlowSenderIsUsedTenAtATime(t *testing.T) {
	w := loopsOpen(t)
	const entries = 50
	for _, most := range []int64{1, 10} {
		var now, peak atomic.Int64
		var once sync.Once
		together := make(chan struct{})
		w.sender.before = func(ctx context.Context, _ saga.Message, _ saga.Firing) error {
			n := now.Add(1)
			defer now.Add(-1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			if n >= most {
				once.Do(func() { close(together) })
			}
			select {
			case <-together:
				runtime.Gosched() // so that the test would notice one too many
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pgdev.Patience(20 * time.Second)):
				once.Do(func() { close(together) }) // the test fails by its count
				return nil
			}
		}
		w.exec("TRUNCATE :schema.run, :schema.run_attempt, :schema.manifest, :schema.sent_message CASCADE")
		w.queued("q", entries, 0)
		w.drain(w.scheduler(func(o *Options) { o.MaxConcurrentDispatch = int(most) }))
		if got := peak.Load(); got != most {
			t.Errorf("%d were sent at the same time, want %d", got, most)
		}
		w.onceEach()
	}
}

// A dispatch that runs out of time leaves its remaining runs to others, unlocked.
func TestSlowSenderDoesNotHoldWhatItHasNoTimeFor(t *testing.T) {
	t.Parallel()
	p := &dispatch{wanted: []candidate{{id: NewRunID()}, {id: NewRunID()}, {id: NewRunID()}}}
	p.postpone([]claim{{id: p.wanted[1].id}, {id: p.wanted[2].id}})
	b := newBasket(p.wanted, 1)
	if first := b.take(); len(first) != 3 {
		t.Fatalf("took %d", len(first))
	}
	b.putBack(p.late)
	if a, c := b.take(), b.take(); len(a) != 1 || len(c) != 1 || a[0].id != p.wanted[1].id ||
		c[0].id != p.wanted[2].id {
		t.Errorf("took %v and %v", a, c)
	}
}

// The dispatcher finds out by its methods what its Sender can do: this checks at compile time that a bus has them.
var (
	_ Transactor = (*bus.Bus)(nil)
	_ AllSender  = (*bus.Bus)(nil)
)

// watchedBus records the isolation level of each transaction that a bus is asked for.
type watchedBus struct {
	*bus.Bus
	levels []string
}

func (b *watchedBus) InTx(ctx context.Context, fn func(tx pgx.Tx) error, level ...sql.IsolationLevel) error {
	return b.Bus.InTx(ctx, func(tx pgx.Tx) error {
		inForce := ""
		if err := tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&inForce); err != nil {
			return err
		}
		b.levels = append(b.levels, inForce)
		return fn(tx)
	}, level...)
}

type ping struct{}

func (ping) Kind() string { return "ping" }

// A transaction of the bus wakes the handlers of the sent messages right after its commit.
func TestDispatchRunsInATransactionOfTheBus(t *testing.T) {
	w := loopsOpen(t)
	owners, err := bus.New(w.owner, bus.Options{Schema: w.schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := bus.NewEndpoint(owners, "pings", bus.EndpointOptions{},
		bus.Handle(func(*bus.Context, ping) error { return nil }))
	if err == nil {
		err = handler.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.queued("q", 3, 0)
	real, err := bus.New(w.isolated("serializable"), bus.Options{Schema: w.schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	sender := &watchedBus{Bus: real}
	s, err := New(w.pool, w.schema, sender, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.dispatcher.pass(t.Context()); err != nil ||
		!slices.Equal(sender.levels, []string{"read committed"}) {
		t.Errorf("transactions of the bus at the levels %q, want one that is read committed: %v", sender.levels, err)
	}
	operator, err := operate.New(w.pool, operate.Options{Schema: w.schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := operator.Messages().Peek(t.Context(), "pings", operate.PeekOptions{}); err != nil ||
		len(sent) != 3 ||
		sent[0].Info.Kind != "ping" {
		t.Errorf("the queue has %d messages, want 3: %v", len(sent), err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != 3 {
		t.Errorf("%d runs are active, want 3", n)
	}
}

// A transaction keeps rows locked that the end of a late run and the dispatch of another need. All other runs
// continue.
func TestLockedRowsStopNobodyElse(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	w.expired()
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, parent, follows) VALUES ('after-late', '{}',
		'ping', '{}', 'late', true)`)
	s := w.scheduler()
	release := w.locked("after-late")
	if c := w.cycle(s); c.queued != 3 || c.reaped != 0 {
		t.Errorf("%+v, want 3 queued", c)
	}
	release()
	w.exec("UPDATE :schema.manifest SET overlap = true WHERE name = 'm2'")
	release = w.locked("m2")
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Error(err)
	}
	if w.states("m1")+w.states("m2")+w.states("m3") != "schedule active 1schedule queued 0schedule active 1" {
		t.Errorf("m1: %s, m2: %s, m3: %s", w.states("m1"), w.states("m2"), w.states("m3"))
	}
	release()
	if c := w.cycle(s); c.reaped != 1 {
		t.Errorf("%+v, want the late run", c)
	}
	w.drain(s)
	w.onceEach()
}

// One locked manifest kept all runs from being timed out, and the holder of that lock might wait for a lock of one
// run.
func TestLockedFollowerKeepsNoOtherRunFromItsEnd(t *testing.T) {
	w := loopsOpen(t)
	w.expired()
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, parent, follows) VALUES ('after-late', '{}',
		'ping', '{}', 'late', true)`)
	release := w.locked("after-late")
	w.hourlies(1)
	s := w.scheduler()
	w.cycle(s)
	w.drain(s)
	w.exec("UPDATE :schema.run SET deadline = now()")
	if c := w.cycle(s); c.reaped != 1 || w.states("m1") != "schedule timed_out 1" ||
		w.states("late") != "manual active 1" {
		t.Errorf("%+v; m1: %s, late: %s; want the run of m1 timed out", c, w.states("m1"), w.states("late"))
	}
	release()
	if c := w.cycle(s); c.reaped != 1 || w.states("late") != "manual timed_out 1" {
		t.Errorf("%+v; late: %s; want it timed out", c, w.states("late"))
	}
}

// A lock that keeps runs from being timed out keeps no manifest from firing.
func TestRunsThatCannotBeEndedStopNoManifest(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(3)
	w.expired()
	w.exec(`CREATE FUNCTION :schema.refuse() RETURNS trigger
		LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no run ends here''; END'`)
	w.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON :schema.run FOR EACH ROW
		WHEN (NEW.state = 'timed_out') EXECUTE FUNCTION :schema.refuse()`)
	var book logbook
	s := w.scheduler(func(o *Options) { o.Logger = book.logger(slog.LevelWarn) })
	if c := w.cycle(s); c.queued != 3 || c.reaped != 0 {
		t.Errorf("%+v, want 3 queued", c)
	}
	if !book.has("runs that took too long were not ended") || !book.has("no run ends here") {
		t.Error("nothing is said of it at Warn")
	}
	// A reconciliation reports which of its steps failed, and runs the later ones.
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, live, orphaned_at)
		VALUES ('orphan', '{}', 'ping', '', false, now() - interval '31 days')`)
	if err := s.sweeper.sweep(t.Context(), w.term(s, "a")); err == nil ||
		!strings.HasPrefix(err.Error(), "end runs that took too long: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the reconciliation returned %v, want the fault of one step", err)
	}
	if n := w.count("SELECT count(*) FROM :schema.manifest WHERE name = 'orphan'"); n > 0 {
		t.Error("the orphan is still there: a later step was not taken")
	}
	w.exec("DROP TRIGGER refuse ON :schema.run")
	if c := w.cycle(s); c.reaped != 1 {
		t.Errorf("%+v, want the late run", c)
	}
}

// locked keeps a manifest locked until release is called.
func (w *loopsWorld) locked(name string) (release func()) {
	w.t.Helper()
	tx, err := w.owner.Begin(w.t.Context())
	if err == nil {
		_, err = tx.Exec(w.t.Context(), w.schema.Render("SELECT FROM :schema.manifest WHERE name = $1 FOR UPDATE"),
			name)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := tx.Rollback(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(release) // before the pool is closed, which waits for it
	return release
}

// While one server dispatches runs of a strict group, a second server that picked at the same time dispatches no run
// of the group.
func TestStrictGroupIsCountedByOneServerAtATime(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 5, w.group("g", 2, true, 0))
	a, b := w.scheduler(), w.scheduler()
	picked, err := b.dispatcher.pick(t.Context())
	if err != nil || len(picked) != 2 {
		t.Fatalf("picked %d, %v", len(picked), err)
	}
	// server a picks other runs
	w.exec("UPDATE :schema.run SET priority = 9 WHERE id <> ALL ($1)", []saga.ID{picked[0].id, picked[1].id})
	var begun atomic.Bool
	w.sender.before = func(ctx context.Context, _ saga.Message, _ saga.Firing) error {
		if begun.CompareAndSwap(false, true) {
			if n, err := b.dispatcher.dispatchAll(ctx, picked); n != 0 || err != nil {
				t.Errorf("%d were dispatched beside those of another server, %v", n, err)
			}
		}
		return nil
	}
	if _, err := a.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := b.dispatcher.dispatchAll(t.Context(), picked); n != 0 || err != nil {
		t.Errorf("%d were dispatched over the cap, %v", n, err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'active'"); n != 2 {
		t.Errorf("%d runs are active, want 2", n)
	}
}
