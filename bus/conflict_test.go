package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
)

// stopAt returns a hook for tallies that stops the first step on a message with this number at the gate.
func stopAt(g *gate, n int) func(saga.Message) {
	return func(m saga.Message) {
		if m, ok := m.(add); ok && m.N == n {
			g.pass()
		}
	}
}

// A batch sends, deletes and commits in one pipeline. When its update matched no row any more, the message was consumed
// all the same.
func TestConflictedMessageIsNotConsumed(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Optimistic, stopAt(g, 2))))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(add{Key: "a", N: 2})
	await(w, "the second step", g.came)
	w.exec(`UPDATE edda.saga SET version = version + 1, state = '{"Sum":100}'`)
	g.open()
	w.untilEmpty("tallies")
	w.want(102, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
	w.want(3, `SELECT version FROM edda.saga`)
	if got := w.toldSums(); got != "1 102" {
		t.Errorf("told %q, want %q: what a lost step sends must not be sent", got, "1 102")
	}
	if n := len(eventsOf[event.Conflicted](w)); n != 1 {
		t.Errorf("%d conflicts, want 1%s", n, w.story())
	}
}

// Saving in the order of the plan deadlocked batches with common instances. A save reports a locked row as a conflict,
// and never waits for it.
func TestSavingNeverWaitsForARow(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Optimistic, stopAt(g, 2))))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(add{Key: "a", N: 2})
	await(w, "the second step", g.came)
	holder := w.begin()
	w.execTx(holder, `SELECT FROM edda.saga FOR NO KEY UPDATE`)
	g.open()
	w.until("the save has lost", func() bool { return len(eventsOf[event.Conflicted](w)) > 0 })
	w.commit(holder)
	w.untilEmpty("tallies")
	w.want(3, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// A load that skips locked rows returns no row for a busy instance, and no row for a missing instance.
func TestBusyInstanceIsNotMissing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Pessimistic, nil)))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	holder := w.begin()
	w.execTx(holder, `SELECT FROM edda.saga FOR NO KEY UPDATE`)
	w.send(ask{Key: "a"})
	w.untilWaiting("wait") // the take found it busy, and no other work
	w.want(1, `SELECT count(*) FROM `+w.queue("tallies")+` WHERE attempt = 0 AND conflict = 0`)
	w.commit(holder)
	w.untilEmpty("tallies")
	w.want(0, `SELECT count(*) FROM edda.discarded`)
	if got := w.toldSums(); got != "1 1" {
		t.Errorf("told %q, want %q", got, "1 1")
	}
}

// An instance whose start is not committed is invisible to other transactions. Its messages are early; the instance is
// not missing.
func TestUncommittedStartIsNotMissing(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(store, nil)))
		starter := w.begin()
		w.execTx(starter, `INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
			VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":7}')`)
		w.send(ask{Key: "a"})
		w.until("it was looked for in vain", func() bool {
			return w.count(`SELECT count(*) FROM `+w.queue("tallies")+` WHERE attempt = 0 AND conflict = 1`) == 1
		})
		w.commit(starter)
		w.untilEmptyHurrying("tallies")
		w.want(0, `SELECT count(*) FROM edda.discarded`)
		if got := w.toldSums(); got != "7" {
			t.Errorf("told %q, want 7", got)
		}
	})
}

// A step that reads, sends and changes nothing had no version to compare, so it decided on an outdated state.
func TestSilentStepOnStaleStateIsRunAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Optimistic, func(m saga.Message) {
		if _, ok := m.(ask); ok {
			g.pass()
		}
	})))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(ask{Key: "a"})
	await(w, "the question", g.came)
	w.exec(`UPDATE edda.saga SET version = version + 1, state = '{"Sum":100}'`)
	g.open()
	w.untilEmpty("tallies")
	if got := w.toldSums(); got != "1 100" {
		t.Errorf("told %q, want %q", got, "1 100")
	}
	w.want(2, `SELECT version FROM edda.saga`) // an unchanged instance is checked and not written
}

// Versions begin again when a key is completed and started again, so a save compares the id of the instance too.
func TestRestartedKeyKeepsItsNewLife(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Optimistic, stopAt(g, 2))))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(add{Key: "a", N: 2})
	await(w, "the second step", g.came)
	w.exec(`DELETE FROM edda.saga`)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', 'a', 1, 1, '{"Sum":50}')`)
	g.open()
	w.untilEmpty("tallies")
	w.want(52, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
	if got := w.toldSums(); got != "1 52" {
		t.Errorf("told %q, want %q", got, "1 52")
	}
}

// One instance, addressed by its key and by its id in one batch, was loaded twice, and one of the two changes was lost.
func TestKeyAndReplyReachOneInstance(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"key", "id"} {
		t.Run(first+" first", func(t *testing.T) {
			bothStores(t, func(t *testing.T, store saga.Store) { testKeyAndReply(t, store, first) })
		})
	}
}

type both struct{ ByKey, ByID int }

func testKeyAndReply(t *testing.T, store saga.Store, first string) {
	w := newWorld(t, bus.Options{})
	def := saga.Define("both", saga.Options{Store: store},
		saga.StartedBy(func(m add) string { return m.Key },
			func(s *both, _ *saga.Context, _ add) error { s.ByKey++; return nil }),
		saga.OnReply(func(s *both, _ *saga.Context, _ told) error { s.ByID++; return nil }),
	)
	stop := w.start("both", bus.EndpointOptions{}, bus.Saga(def))
	w.send(add{Key: "a"})
	w.untilEmpty("both")
	stop()
	header := fmt.Sprintf(`{"edda-intent":"reply","edda-instance":%q}`, w.text(`SELECT iid::text FROM edda.saga`))
	reply := func() { w.raw("tally.told", `{"Key":"a"}`, header, "both") }
	if first == "id" {
		reply()
	}
	w.send(add{Key: "a"})
	if first == "key" {
		reply()
	}
	w.start("both", bus.EndpointOptions{Concurrency: 1}, bus.Saga(def))
	w.untilEmpty("both")
	w.wantText(`{"ByKey":2,"ByID":1}`, `SELECT state::text FROM edda.saga`)
	w.want(2, `SELECT version FROM edda.saga`) // one batch, hence one load and one save
}

// The losers of an optimistic save were retried at once, and load alone used up their attempts: they became dead
// letters without a fault. Here two processes share one queue and three instances.
func TestLoadAloneNeverDeadLetters(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	const round, keys = 600, 3
	messages := 0
	load := func() {
		for n := range round {
			w.send(add{Key: fmt.Sprint("k", n%keys), N: 1})
		}
		messages += round
	}
	w.install("tallies", bus.Saga(tallies(saga.Optimistic, nil)))
	load()
	o := bus.EndpointOptions{BatchMax: 10, Concurrency: 2, MaxConflicts: 3}
	w.start("tallies", o, bus.Saga(tallies(saga.Optimistic, nil)))
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", o, bus.Saga(tallies(saga.Optimistic, nil)))
	w.untilEmpty("tallies")
	// on a busy machine the two may miss each other
	for rounds := 0; len(eventsOf[event.Conflicted](w)) == 0; rounds++ {
		if rounds == 20 {
			t.Fatal("there was no conflict: this run has tested nothing")
		}
		load()
		w.untilEmpty("tallies")
	}
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	w.want(messages, `SELECT sum((state ->> 'Sum')::int) FROM edda.saga`)
	w.want(messages, `SELECT count(*) FROM `+w.queue("listener"))
	for _, e := range eventsOf[event.Retried](w) {
		if e.Info.Attempt > 1 {
			t.Fatalf("a conflict cost an attempt: %+v", e)
		}
	}
}

// Skipped rows of a hot instance stayed at the head of the queue: every worker took and skipped them, and the messages
// behind them starved.
func TestHotInstanceLeavesRoomForOthers(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.listener()
		g := newGate(t)
		def := tallies(store, stopAt(g, 1))
		w.install("tallies", bus.Saga(def))
		for range 120 {
			w.send(add{Key: "hot", N: 1})
		}
		w.send(add{Key: "cold", N: 7})
		// the timeout must not end the first step before the gate does
		o := bus.EndpointOptions{BatchMax: 20, Concurrency: 2, StepTimeout: 5 * time.Minute}
		w.start("tallies", o, bus.Saga(def))
		defer g.open()
		await(w, "the first step of the hot instance", g.came)
		w.until("the cold one is done", func() bool { return w.sum("cold") == 7 })
		g.open()
		w.untilEmpty("tallies")
		w.want(120, `SELECT (state ->> 'Sum')::int FROM edda.saga WHERE key = 'hot'`)
	})
}
