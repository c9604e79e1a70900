package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watched reads a watch of a tally in a new goroutine, and sends each value as text: "absent", "living 1: 5", "complete
// 3: 9".
func (w *world) watched(ctx context.Context, b *bus.Bus, def *saga.Definition, key string,
	after bus.WatchCursor) <-chan string {
	w.t.Helper()
	told := make(chan string, 100)
	go func() {
		defer close(told)
		for seen, err := range b.Watch(ctx, def, key, after) {
			if err != nil {
				told <- err.Error()
				return
			}
			told <- sawTally(seen)
		}
	}()
	return told
}

func sawTally(seen bus.WatchEvent) string {
	if seen.Status == bus.InstanceAbsent {
		return "absent"
	}
	state := "?"
	var s tally
	if err := seen.Into(&s); err == nil {
		state = strconv.Itoa(s.Sum)
	}
	return fmt.Sprintf("%v %d: %s", seen.Status, seen.Instance.Version, state)
}

// expect reads the next values of a watch.
func (w *world) expect(told <-chan string, want ...string) {
	w.t.Helper()
	for _, want := range want {
		if got := await(w, want, told); got != want {
			w.t.Fatalf("the watch told %q, want %q", got, want)
		}
	}
}

// endingTallies are tallies that end when they get a negative number.
func endingTallies() *saga.Definition {
	return saga.Define("tally", saga.Options{},
		saga.StartedBy(func(m add) string { return m.Key }, func(s *tally, ctx *saga.Context, m add) error {
			if m.N < 0 {
				ctx.Complete()
				return nil
			}
			s.Sum += m.N
			return nil
		}))
}

// insertTally writes an instance as a second process would.
func (w *world) insertTally(key string, sum int) {
	w.t.Helper()
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'tally', $1, 1, 1, json_build_object('Sum', $2::int))`, key, sum)
}

func TestWatchFollowsAnInstanceFromBeforeItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	for name, wakeup := range map[string]bus.Wakeup{"notify": bus.Notify, "poll only": bus.PollOnly} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{Wakeup: wakeup})
			def := endingTallies()
			w.start("tallies", bus.EndpointOptions{}, bus.Saga(def))
			told := w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{})
			w.expect(told, "absent")
			w.send(add{Key: "a", N: 5})
			w.expect(told, "living 1: 5")
			w.send(add{Key: "b", N: 1})
			w.send(add{Key: "a", N: 2})
			w.expect(told, "living 2: 7")
			w.send(add{Key: "a", N: -1})
			w.expect(told, "complete 2: 7")
			if more, open := <-told; open {
				t.Errorf("after the end: %q", more)
			}
		})
	}
}

// A watch yields commits of other processes without a wake-up.
func TestWatchSeesOtherProcesses(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	told := w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{})
	w.expect(told, "absent")
	w.insertTally("a", 3)
	w.expect(told, "living 1: 3")
	w.exec(`UPDATE edda.saga SET version = 2, state = '{"Sum":4}'`)
	w.expect(told, "living 2: 4")
	w.exec(`DELETE FROM edda.saga`)
	w.expect(told, "complete 2: 4")
}

// A watch follows one instance: when the key has a new instance, the followed one is over, read or unread.
func TestWatchTellsTheEndOfAnInstanceWhoseKeyLivesAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	w.insertTally("a", 3)
	first, _, err := w.bus.Instance(t.Context(), def, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	told := w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{})
	w.expect(told, "living 1: 3")
	tx := w.begin()
	w.execTx(tx, `DELETE FROM edda.saga`)
	w.execTx(tx, `INSERT INTO edda.saga (iid, saga, key, version, state_version, state) VALUES (gen_random_uuid(),
		'tally', 'a', 9, 1, '{"Sum":1}')`)
	w.commit(tx)
	w.expect(told, "complete 1: 3")
	w.expect(w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{ID: first.ID, Version: 1}), "complete 1: ?")
	w.expect(w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{}), "living 9: 1")
}

// A reader that comes back passes its version, and gets newer values: a new version, or the end of the instance.
func TestWatchGoesOnAfterAMark(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	w.insertTally("a", 3)
	i, _, err := w.bus.Instance(t.Context(), def, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	mark, err := bus.ParseWatchCursor(bus.WatchCursor{ID: i.ID, Version: i.Version}.String())
	if err != nil {
		t.Fatal(err)
	}
	told := w.watched(t.Context(), w.bus, def, "a", mark)
	w.expect(w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{}), "living 1: 3") // read after both have joined
	w.exec(`UPDATE edda.saga SET version = 2, state = '{"Sum":4}'`)
	w.expect(told, "living 2: 4")
	w.exec(`DELETE FROM edda.saga`)
	w.expect(told, "complete 2: 4")
	w.expect(w.watched(t.Context(), w.bus, def, "a", mark), "complete 1: ?")
	w.expect(w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{}), "absent")
}

// A slow reader gets the newest version, and delays no other reader.
func TestWatchTellsASlowReaderTheNewest(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	w.insertTally("a", 1)
	quick := w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{})
	w.expect(quick, "living 1: 1")
	var slow []string
	for seen, err := range w.bus.Watch(t.Context(), def, "a", bus.WatchCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, sawTally(seen))
		if seen.Status == bus.InstanceComplete || seen.Instance.Version > 1 {
			break
		}
		for v := 2; v <= 4; v++ { // while this loop's body runs
			w.exec(`UPDATE edda.saga SET version = $1::bigint, state = json_build_object('Sum', $1::bigint)`, v)
			w.expect(quick, fmt.Sprintf("living %d: %d", v, v))
		}
	}
	if want := []string{"living 1: 1", "living 4: 4"}; !slices.Equal(slow, want) {
		t.Errorf("told %q, want %q", slow, want)
	}
}

// counter counts the queries of a pool that read watched instances.
type counter struct {
	looks atomic.Int64
	look  chan struct{}
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(q.SQL, "-- name: changed") {
		c.looks.Add(1)
		select {
		case c.look <- struct{}{}:
		default:
		}
	}
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *world) counting() (*bus.Bus, *counter) {
	w.t.Helper()
	c := &counter{look: make(chan struct{}, 1)}
	config, err := pgxpool.ParseConfig(pgdev.DSN(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	config.ConnConfig.Tracer = c
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	b, err := bus.New(pool, bus.Options{Schema: w.schema})
	if err != nil {
		w.t.Fatal(err)
	}
	return b, c
}

// A thousand watchers of a thousand instances cost as many queries as one watcher, and no query when they are gone.
func TestAThousandWatchersAreOneQuery(t *testing.T) {
	const watchers = 1000
	w := newWorld(t, bus.Options{})
	b, c := w.counting()
	def := endingTallies()
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'tally', n::text, 1, 1, '{"Sum":1}' FROM generate_series(1, $1::int) n`, watchers)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	saw := make(chan int64, 2*watchers)
	var all sync.WaitGroup
	for n := range watchers {
		all.Go(func() {
			for seen, err := range b.Watch(ctx, def, strconv.Itoa(n+1), bus.WatchCursor{}) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				saw <- seen.Instance.Version
			}
		})
	}
	for range watchers {
		await(w, "the first version", saw)
	}
	joined := c.looks.Load()
	begun := time.Now()
	for range 4 { // at rest: the queries are a second apart, and each reads all instances
		await(w, "a look", c.look)
	}
	if looks, took := c.looks.Load()-joined, time.Since(begun); float64(looks) > took.Seconds()*5+2 {
		t.Errorf("%d looks in %v, want at most four a second", looks, took)
	}
	w.exec(`UPDATE edda.saga SET version = 2`)
	changed := c.looks.Load()
	for range watchers {
		if v := await(w, "the second version", saw); v != 2 {
			t.Fatalf("version %d, want 2", v)
		}
	}
	if looks := c.looks.Load() - changed; looks > 20 { // alone each instance would be a query
		t.Errorf("%d looks for %d changes", looks, watchers)
	}
	t.Logf("%d looks while %d watchers joined", joined, watchers)
	cancel()
	all.Wait()
	if n := bus.Watched(b); n != 0 {
		t.Errorf("%d instances are watched after the last watcher has left", n)
	}
}

// Many pages of one order are one instance of the query.
func TestManyWatchersOfOneInstance(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(def))
	w.send(add{Key: "a", N: 1})
	var all []<-chan string
	for range 50 {
		all = append(all, w.watched(t.Context(), w.bus, def, "a", bus.WatchCursor{}))
	}
	for _, told := range all {
		for got := await(w, "a version", told); got != "living 1: 1"; got = await(w, "a version", told) {
			if got != "absent" {
				t.Fatalf("told %q", got)
			}
		}
	}
	w.send(add{Key: "a", N: -1})
	for _, told := range all {
		w.expect(told, "complete 1: 1")
	}
}

// Watchers that come and go at once, so that the loop ends and begins again all the time, each get the current version.
func TestWatchersThatComeAndGo(t *testing.T) {
	w := newWorld(t, bus.Options{})
	b := w.bus
	def := endingTallies()
	for n := range 3 {
		w.insertTally(fmt.Sprint("k", n), 1)
	}
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(10*time.Second))
				for seen, err := range b.Watch(ctx, def, fmt.Sprint("k", (n+i)%3), bus.WatchCursor{}) {
					if err != nil || seen.Status != bus.InstanceLiving {
						t.Errorf("watcher %d.%d: %v, %v", n, i, seen.Status, err)
					}
					break
				}
				cancel()
			}
		})
	}
	all.Wait()
}

func TestWatchEndsWithItsContext(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def, why := endingTallies(), errors.New("the page was closed")
	ctx, cancel := context.WithCancelCause(t.Context())
	told := w.watched(ctx, w.bus, def, "a", bus.WatchCursor{})
	w.expect(told, "absent")
	cancel(why)
	w.expect(told, "watch saga tally/a: the page was closed")
	// ended before it began
	w.expect(w.watched(ctx, w.bus, def, "a", bus.WatchCursor{}), "watch saga tally/a: the page was closed")
}

// A wrong argument of one caller must not make the query of the other callers fail.
func TestWatchRefusesWhatCannotBe(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := endingTallies()
	for name, key := range map[string]string{"empty": "", "long": strings.Repeat("k", 513), "NUL": "a\x00",
		"not UTF-8": "\xff"} {
		if got := await(w, name, w.watched(t.Context(), w.bus, def, key, bus.WatchCursor{})); !strings.Contains(got,
			"want 1 to 512") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := await(w, "no saga", w.watched(t.Context(), w.bus, nil, "a",
		bus.WatchCursor{})); got != "watch: the saga is nil" {
		t.Error(got)
	}
	nowhere, err := bus.New(w.pool, bus.Options{Schema: w.schema + "_not"})
	if err != nil {
		t.Fatal(err)
	}
	if got := await(w, "no schema", w.watched(t.Context(), nowhere, def, "a",
		bus.WatchCursor{})); !strings.Contains(got,
		"edda migrate up") {
		t.Errorf("without a schema: %q", got)
	}
	for _, text := range []string{"7", "a.1", newID(t).String(), newID(t).String() + ".-1", saga.ID{}.String() + ".1",
		newID(t).String() + ".1 "} {
		if m, err := bus.ParseWatchCursor(text); err == nil {
			t.Errorf("mark %q was taken for %v", text, m)
		}
	}
	if m, err := bus.ParseWatchCursor(""); err != nil || m != (bus.WatchCursor{}) {
		t.Errorf("%v %v", m, err)
	}
}

// A query that fails is repeated, and no watch yields its error.
func TestWatchOutlivesALostConnection(t *testing.T) {
	w := newWorld(t, bus.Options{})
	b, proxy := w.proxied()
	def := endingTallies()
	w.insertTally("a", 1)
	told := w.watched(t.Context(), b, def, "a", bus.WatchCursor{})
	w.expect(told, "living 1: 1")
	proxy.Set(faultproxy.Fault{Statement: "changed", Do: faultproxy.DropReply})
	w.exec(`UPDATE edda.saga SET version = 2, state = '{"Sum":4}'`)
	w.until("two looks have failed", func() bool { return len(proxy.Fired()) >= 2 })
	proxy.Set()
	w.expect(told, "living 2: 4")
}

// An instance does not wait for the next poll if it may have changed: a commit of this process, and a message on its
// way to the saga, make it urgent. No query can begin while one is held.
func TestWhatMakesAWatchedInstanceUrgent(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"a commit of this process": true,
		"a message that this process has sent": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			def := endingTallies()
			part := bus.Saga(def)
			w.install("tallies", part)
			b, proxy := w.proxied()
			w.insertTally("a", 1)
			w.insertTally("b", 1)
			told := w.watched(t.Context(), b, def, "a", bus.WatchCursor{})
			w.expect(told, "living 1: 1")
			w.expect(w.watched(t.Context(), b, def, "b", bus.WatchCursor{}), "living 1: 1")
			held, released := make(chan bool, 1), make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			defer release() // otherwise a failed test would wait for its own proxy
			proxy.Set(faultproxy.Fault{Statement: "changed", Do: faultproxy.Pause(func() {
				select {
				case held <- true:
				default:
				}
				<-released
			})})
			await(w, "a look", held)
			if bus.Urgent(b, "tally", "a") {
				t.Error("it is urgent before anything has happened")
			}
			sender := b
			if elsewhere {
				sender = w.process(pgdev.DSN(t), bus.Options{Wakeup: bus.PollOnly})
				w.startOn(b, "tallies", bus.EndpointOptions{Poll: 10 * time.Millisecond}, part)
			}
			if _, err := sender.Send(t.Context(), add{Key: "a", N: 1}); err != nil {
				t.Fatal(err)
			}
			w.untilWithin(7*time.Second, "it is urgent, before the look that is held gives up",
				func() bool { return bus.Urgent(b, "tally", "a") })
			if elsewhere && bus.Urgent(b, "tally", "b") {
				t.Error("so is an instance that has not changed")
			}
			proxy.Set()
			release()
			if elsewhere {
				w.expect(told, "living 2: 2")
			}
		})
	}
}
