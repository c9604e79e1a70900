package bus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// hands records which messages are in hand, in all processes of a test.
type hands struct {
	mu    sync.Mutex
	begun []string
	now   map[int]context.Context // of the handlers that run, by message
	twice []string                // messages that began during a handler whose context had not ended
	told  map[int]error           // why the contexts of the first handlers ended
}

func newHands() *hands { return &hands{now: map[int]context.Context{}, told: map[int]error{}} }

// take begins a message. The caller calls leave when its handler returns.
func (h *hands) take(ctx context.Context, process string, message int) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := h.now[message]; first != nil && first.Err() == nil {
		h.twice = append(h.twice, fmt.Sprintf("process %s begins message %d, which another handler has", process,
			message))
	}
	h.begun = append(h.begun, fmt.Sprint(process, message))
	h.now[message] = ctx
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.now[message] == ctx {
			delete(h.now, message)
		}
		if err := context.Cause(ctx); err != nil && h.told[message] == nil {
			h.told[message] = err
		}
	}
}

func (h *hands) has(begun string) bool { return h.times(begun) > 0 }

func (h *hands) times(begun string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.begun {
		if b == begun {
			n++
		}
	}
	return n
}

func (h *hands) number() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.begun)
}

func (h *hands) want(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, twice := range h.twice {
		t.Error(twice)
	}
	if t.Failed() {
		t.Log("begun:", h.begun)
	}
}

// until blocks a handler until its context ends or end is closed.
func until(ctx context.Context, end <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-end:
	}
}

func ended(t *testing.T) (end chan struct{}, once func()) {
	end = make(chan struct{})
	once = sync.OnceFunc(func() { close(end) })
	t.Cleanup(once)
	return end, once
}

// lockRow locks the row of a message, as an operator with psql would.
func (w *world) lockRow(endpoint string, id [16]byte) pgx.Tx {
	w.t.Helper()
	tx := w.begin()
	w.execTx(tx, "SELECT FROM "+w.queue(endpoint)+" WHERE id = $1 FOR UPDATE", id)
	return tx
}

// A finish that waited for a row kept the process from extending its other leases, and from giving them up. So the
// messages of its handlers were handled a second time, in the same process and in others, and no handler was cancelled.
func TestFinishThatWaitsLetsNoLeaseEnd(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	blocked, release := ended(t)
	end, finish := ended(t)
	w.start("callers", bus.EndpointOptions{Lease: 3 * time.Second, Poll: 50 * time.Millisecond, Concurrency: 4},
		bus.Handle(func(ctx *bus.Context, m call) error {
			defer h.take(ctx, "", m.N)()
			if m.N == 1 {
				<-blocked
				return nil
			}
			until(ctx, end)
			return context.Cause(ctx)
		}))
	sent := w.send(call{N: 1})
	w.until("it runs", func() bool { return h.number() == 1 })
	tx := w.lockRow("callers", sent.ID)
	w.send(call{N: 2})
	w.until("the other runs", func() bool { return h.number() == 2 })
	release()
	w.untilWaiting("finish")
	first := w.text("SELECT due::text FROM " + w.queue("callers") + " WHERE body = convert_to('{\"N\":2}', 'UTF8')")
	for range 4 { // more than a lease
		w.until("the lease of the other is extended", func() bool {
			due := w.text("SELECT due::text FROM " + w.queue("callers") +
				" WHERE body = convert_to('{\"N\":2}', 'UTF8')")
			moved := due != first
			first = due
			return moved
		})
	}
	w.commit(tx)
	finish()
	w.untilEmpty("callers")
	h.want(t)
	if h.has("2") && h.number() > 3 { // the blocked message may have been claimed again
		t.Errorf("begun: %v", h.begun)
	}
}

// A message that cannot be finished delays only itself: handlers that end at the same time and later are finished.
func TestFinishThatWaitsKeepsNobodyElse(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	end, release := ended(t)
	w.start("callers", bus.EndpointOptions{Lease: 9 * time.Second, Poll: 50 * time.Millisecond, Concurrency: 16},
		bus.Handle(func(ctx *bus.Context, m call) error {
			defer h.take(ctx, "", m.N)()
			if m.N < 8 {
				until(ctx, end)
			}
			return nil
		}))
	first := w.send(call{N: 0})
	for n := range 7 {
		w.send(call{N: n + 1})
	}
	w.until("eight run", func() bool { return h.number() == 8 })
	tx := w.lockRow("callers", first.ID)
	release()
	w.untilWaiting("finish")
	for n := range 30 {
		w.send(call{N: 100 + n})
	}
	w.until("all others are finished", func() bool { return w.rows("callers") == 1 })
	if lost := eventsOf[event.ClaimLost](w); len(lost) > 0 {
		t.Errorf("they were finished after %d claims were lost", len(lost))
	}
	w.commit(tx)
	w.untilEmpty("callers")
	for n := range 7 {
		if times := h.times(fmt.Sprint(n + 1)); times != 1 {
			t.Errorf("message %d, which nobody held up, was handled %d times", n+1, times)
		}
	}
}

// A finish may take a third of a lease and no longer. If the database is too slow for that again and again, with fast
// answers in between, the message is not to blame.
func TestFinishThatIsSlowBlamesNobody(t *testing.T) {
	w := newWorld(t, bus.Options{})
	keep(w)
	var calls atomic.Int64
	part := bus.Handle(func(ctx *bus.Context, m call) error {
		calls.Add(1)
		ctx.Send(called(m))
		return nil
	})
	w.install("callers", part)
	w.exec(`CREATE SEQUENCE edda.finishes; GRANT ALL ON SEQUENCE edda.finishes TO PUBLIC`)
	w.exec(`CREATE FUNCTION edda.slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('edda.finishes') IN (1, 2, 3, 4, 5, 6,
			8) THEN PERFORM pg_sleep(10); END IF; -- between is what would be the verdict on it
			RETURN NULL;
		END $$`)
	w.exec(`CREATE TRIGGER slowly BEFORE DELETE ON ` + w.queue("callers") +
		` FOR EACH STATEMENT EXECUTE FUNCTION edda.slowly()`)
	w.start("callers", bus.EndpointOptions{Lease: 3 * time.Second, Poll: 50 * time.Millisecond, Policy: once}, part)
	w.send(call{N: 7})
	w.untilWithin(pgdev.Patience(time.Minute), "it is finished",
		func() bool { return calls.Load() > 0 && w.rows("callers") == 0 })
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	w.until("its effects are there", func() bool { return w.count(`SELECT count(*) FROM edda.kept`) == 1 })
	if n, lost := calls.Load(), len(eventsOf[event.ClaimLost](w)); n != 1 {
		t.Errorf("the handler was called %d times, and %d claims were lost", n, lost)
	}
}

// A message whose finish takes too long delays only itself, until it is judged.
func TestFinishThatIsSlowKeepsNobodyElse(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	part := bus.Handle(func(ctx *bus.Context, m call) error {
		defer h.take(ctx, "", m.N)()
		return nil
	})
	w.install("callers", part)
	w.exec(`CREATE TABLE edda.slow (); INSERT INTO edda.slow DEFAULT VALUES; GRANT SELECT ON edda.slow TO PUBLIC;
		CREATE SEQUENCE edda.tries; GRANT ALL ON SEQUENCE edda.tries TO PUBLIC`)
	w.exec(`CREATE FUNCTION edda.slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('edda.tries');
			IF EXISTS (SELECT FROM edda.slow) THEN PERFORM pg_sleep(60); END IF;
			RETURN OLD;
		END $$`)
	w.exec(`CREATE TRIGGER slowly BEFORE DELETE ON ` + w.queue("callers") + ` FOR EACH ROW
		WHEN (convert_from(OLD.body, 'UTF8')::json ->> 'N' = '0') EXECUTE FUNCTION edda.slowly()`)
	w.start("callers", bus.EndpointOptions{Lease: 12 * time.Second, Poll: 50 * time.Millisecond, Concurrency: 16}, part)
	w.send(call{N: 0})
	w.until("it is finished slowly", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'
			AND position($1 IN query) > 0`, w.schema) == 1
	})
	for n := range 30 {
		w.send(call{N: 100 + n})
	}
	w.until("all others are handled", func() bool { return h.number() == 31 })
	before := w.count(`SELECT last_value FROM edda.tries`)
	w.untilWithin(pgdev.Patience(time.Minute), "all others are finished", func() bool { return w.rows("callers") == 1 })
	// one try may begin after the others' end
	if tries := w.count(`SELECT last_value FROM edda.tries`) - before; tries > 1 {
		t.Errorf("the slow finish was tried %d times more before the others", tries)
	}
	w.exec(`DELETE FROM edda.slow`)
	w.untilWithin(pgdev.Patience(time.Minute), "it is finished, too", func() bool { return w.rows("callers") == 0 })
	for n := range 30 {
		if times := h.times(fmt.Sprint(100 + n)); times != 1 {
			t.Errorf("message %d, which is not slow, was handled %d times", 100+n, times)
		}
	}
}

// A process whose statements get no answer cannot extend its leases. It cancels its handlers before another process may
// have their messages.
func TestHandlersOfAProcessThatIsCutOffAreToldInTime(t *testing.T) {
	for name, statements := range map[string][]string{
		"extend":            {"extend"},
		"extend and finish": {"extend", "finish"},
		"everything":        {"open_leased", "renew_session"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			h := newHands()
			end, release := ended(t)
			silent := faultproxy.Pause(func() { <-end })
			process, proxy := w.proxied()
			o := bus.EndpointOptions{Lease: time.Second, Poll: 50 * time.Millisecond, Concurrency: 4}
			begin := func(process string) bus.Part {
				return bus.Handle(func(ctx *bus.Context, m call) error {
					defer h.take(ctx, process, m.N)()
					if process == "b" || m.N == 1 {
						return nil
					}
					until(ctx, end)
					return nil
				})
			}
			w.startOn(process, "callers", o, begin("a"))
			w.send(call{N: 2})
			w.until("it runs", func() bool { return h.has("a2") })
			var faults []faultproxy.Fault
			for _, statement := range statements {
				faults = append(faults, faultproxy.Fault{Statement: statement, Do: silent})
			}
			proxy.Set(faults...)
			w.send(call{N: 1})
			w.start("callers", o, begin("b"))
			w.until("another process has it", func() bool { return h.has("b2") })
			h.want(t)
			release()
			w.untilEmpty("callers")
			h.mu.Lock()
			defer h.mu.Unlock()
			if told := h.told[2]; told != bus.ErrClaimLost {
				t.Errorf("the first handler was told %v", told)
			}
		})
	}
}

// A process that freezes in the middle of a transaction holds rows, lanes and the right to claim. Postgres ends the
// transaction within a lease, and does not wait until the connection is given up.
func TestProcessThatStandsStillKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statement string // the last of its pipeline: the server waits for the next
		n         int
		order     bus.Ordering
	}{{"finish", 1, bus.Unordered}, {"claim", 1, bus.Strict}, {"parked_in", 1, bus.Strict},
		{"parked_in", 2, bus.Strict}, {"finish", 1, bus.Strict}} {
		t.Run(fmt.Sprint(c.statement, " ", c.n, " ", c.order), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			h := newHands()
			end, thaw := ended(t)
			defer thaw() // before the frozen process is waited for
			stands := make(chan struct{})
			frozen, proxy := w.proxied()
			proxy.Set(faultproxy.Fault{Statement: c.statement, N: c.n, When: faultproxy.After,
				Do: faultproxy.Pause(func() {
					proxy.Set(faultproxy.Fault{Statement: "open_leased", Do: faultproxy.Pause(func() { <-end })})
					close(stands)
					<-end
				})})
			o := bus.EndpointOptions{Ordered: c.order, Lease: 3 * time.Second, Poll: 50 * time.Millisecond}
			var key []bus.HandleOption[turn]
			if c.order != bus.Unordered {
				key = append(key, bus.KeyedBy(func(m turn) string { return m.Key }))
			}
			part := func(process string) bus.Part {
				return bus.Handle(func(ctx *bus.Context, m turn) error {
					defer h.take(ctx, process, m.N)()
					if m.N == 2 {
						ctx.Send(called{N: 2}) // the finish takes more than one statement
					}
					return nil
				}, key...)
			}
			w.install("keepers", bus.HandleTx(func(*bus.Context, pgx.Tx, called) error { return nil }))
			w.startOn(frozen, "turns", o, part("a"))
			w.send(turn{Key: "k", N: 2})
			await(w, "the process to stand still", stands)
			w.start("turns", o, part("b"))
			w.send(turn{Key: "k", N: 3})
			w.untilWithin(pgdev.Patience(o.Lease), "another process has handled it all", func() bool {
				return h.has("b2") && h.has("b3") && w.rows("turns") == 0
			})
			h.want(t)
			thaw()
			w.want(1, "SELECT count(*) FROM "+w.queue("keepers"))
		})
	}
}

// If a message came back to the process that had claimed it, its first handler continued beside the second until the
// next extension, a third of a lease later.
func TestOlderClaimOfAMessageIsGivenUp(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	end, _ := ended(t)
	w.start("callers", bus.EndpointOptions{Lease: time.Hour, Poll: 20 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m call) error {
			again := h.has("1")
			defer h.take(ctx, "", m.N)()
			if !again {
				until(ctx, end)
			}
			return nil
		}))
	w.send(call{N: 1})
	w.until("it runs", func() bool { return h.has("1") })
	w.hurry("callers")
	w.untilEmpty("callers")
	h.want(t)
	w.until("the loss was told", func() bool { return len(eventsOf[event.ClaimLost](w)) == 1 })
}

// The same in a lane: with the older claim the process gives up the lane, and the messages of the lane that it has
// claimed at the same time.
func TestLaneOfAnOlderClaimIsGivenUp(t *testing.T) {
	w := newWorld(t, bus.Options{})
	h := newHands()
	end, release := ended(t)
	o := bus.EndpointOptions{Ordered: bus.Overtaking, Lease: 2 * time.Second, Poll: 20 * time.Millisecond}
	w.start("turns", o, bus.Handle(func(ctx *bus.Context, m turn) error {
		again := h.has("1")
		defer h.take(ctx, "", m.N)()
		if !again {
			until(ctx, end)
		}
		return nil
	}, bus.KeyedBy(func(m turn) string { return m.Key })))
	w.send(turn{Key: "k", N: 1})
	w.until("it runs", func() bool { return h.has("1") })
	second := w.send(turn{Key: "k", N: 2})
	table := w.queue("turns")
	w.until("the second is claimed", func() bool {
		return w.count("SELECT count(*) FROM "+table+
			" WHERE owner IS NOT NULL") == 2
	})
	tx := w.begin()
	w.execTx(tx, `INSERT INTO `+table+` (due, id, kind, header, body) VALUES (now() - interval '1 hour', `+
		`gen_random_uuid(), 'turn.take', '{}', '{"Key":"k","N":3}')`)
	w.execTx(tx, `UPDATE `+table+` SET due = now() WHERE id = $1`, [16]byte(second.ID))
	w.commit(tx)
	w.until("the lane was given up", func() bool { return len(eventsOf[event.ClaimLost](w)) > 0 })
	release()
	w.untilEmpty("turns")
	h.want(t)
}
