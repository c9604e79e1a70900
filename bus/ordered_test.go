package bus_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

type turn struct {
	Key  string
	N    int
	Fail int // attempts that fail
}

func (turn) Kind() string { return "turn.take" }

// turns records the messages that the handlers of turns ran.
type turns struct {
	mu    sync.Mutex
	now   map[string]int // in hand, by key
	seen  map[string][]int
	tries map[string]int
	twice []string // keys with two messages in hand at once
}

func newTurns() *turns {
	return &turns{now: map[string]int{}, seen: map[string][]int{}, tries: map[string]int{}}
}

func (s *turns) handle(ctx *bus.Context, m turn) error {
	s.mu.Lock()
	if s.now[m.Key]++; s.now[m.Key] > 1 {
		s.twice = append(s.twice, m.Key)
	}
	s.mu.Unlock()
	<-time.After(time.Duration(rand.IntN(300)) * time.Microsecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[m.Key]--
	try := fmt.Sprint(m.Key, m.N)
	if s.tries[try]++; s.tries[try] <= m.Fail {
		return errors.New("not yet")
	}
	s.seen[m.Key] = append(s.seen[m.Key], m.N)
	return nil
}

func (s *turns) part() bus.Part {
	return bus.Handle(s.handle, bus.KeyedBy(func(m turn) string { return m.Key }))
}

func quickly(recoverability.Failure) recoverability.Decision {
	return recoverability.RetryIn(30 * time.Millisecond)
}

func (w *world) sendTurns(keys, n int, failing func(n int) int) {
	w.t.Helper()
	for i := range n {
		for k := range keys {
			m := turn{Key: fmt.Sprint("key-", k), N: i}
			if failing != nil {
				m.Fail = failing(i)
			}
			w.send(m)
		}
	}
}

func (w *world) wantTurns(s *turns, keys, n int, inOrder bool) {
	w.t.Helper()
	w.until("every turn was taken", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		total := 0
		for _, seen := range s.seen {
			total += len(seen)
		}
		return total >= keys*n
	})
	w.untilEmpty("turns")
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := len(eventsOf[event.ClaimLost](w)) // a machine that freezes for a lease runs that many messages again
	if len(s.twice) > lost {
		w.t.Errorf("two messages of a key were in hand at once: %v", s.twice)
	}
	for key, seen := range s.seen {
		once := slices.Compact(slices.Clone(seen))
		if len(once) != n || len(seen) > n+lost || inOrder && !slices.IsSorted(once) {
			w.t.Errorf("%s: %d messages, in the order %v, and %d claims were lost", key, len(seen), seen, lost)
		}
	}
	w.until("no lane is left", func() bool { return w.count("SELECT count(*) FROM edda.lane") == 0 })
	w.want(0, "SELECT count(*) FROM edda.parked")
}

func (w *world) startTurns(s *turns, processes int, o bus.EndpointOptions) {
	w.t.Helper()
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	w.start("turns", o, s.part())
	for range processes - 1 {
		w.startOn(w.process(pgdev.DSN(w.t), bus.Options{}), "turns", o, s.part())
	}
}

func TestOrderedKeysInThreeProcesses(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	w.startTurns(s, 3, bus.EndpointOptions{Ordered: bus.Overtaking, BatchMax: 10})
	w.sendTurns(5, 60, nil)
	w.wantTurns(s, 5, 60, true)
}

// With one key of many messages the queue must not be scanned for each: a message is parked once and comes back once.
func TestStrictWaitsBehindTheOneThatFailed(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	w.startTurns(s, 2, bus.EndpointOptions{Ordered: bus.Strict, Policy: quickly})
	w.sendTurns(3, 12, func(n int) int { return n % 4 / 3 * 2 })
	w.wantTurns(s, 3, 12, true)
}

func TestOvertakingGoesOn(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	w.startTurns(s, 2, bus.EndpointOptions{Ordered: bus.Overtaking,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.RetryIn(time.Second)
		}})
	w.sendTurns(1, 5, func(n int) int { return (4 - n) / 4 }) // the first fails once
	w.wantTurns(s, 1, 5, false)
	if got := s.seen["key-0"]; !slices.Equal(got, []int{1, 2, 3, 4, 0}) {
		t.Errorf("the order is %v, want the failed one last", got)
	}
}

func TestOrderSurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	for _, order := range []bus.Ordering{bus.Overtaking, bus.Strict} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			s := newTurns()
			o := bus.EndpointOptions{Ordered: order, Lease: 2 * time.Second, Poll: 50 * time.Millisecond, BatchMax: 20}
			w.startTurns(s, 1, o)
			process, proxy := w.proxied()
			w.startOn(process, "turns", o, s.part())
			w.until("it claims", func() bool { return proxy.Seen()["claim"] > 0 })
			proxy.Random(0.05, faultproxy.DropReply)
			w.sendTurns(4, 50, nil)
			// In one statement: between two statements messages come back from where they are parked.
			left := "SELECT (SELECT count(*) FROM " + w.queue("turns") + ") + (SELECT count(*) FROM edda.parked)"
			w.until("every turn was taken", func() bool { return w.count(left) == 0 })
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.twice) > 0 {
				t.Errorf("two messages of a key were in hand at once: %v", s.twice)
			}
			for key, seen := range s.seen { // a message whose finish was lost is handled again, before its followers
				slices.Sort(seen)
				if got := slices.Compact(seen); len(got) != 50 {
					t.Errorf("%s: %d messages", key, len(got))
				}
			}
			s.mu.Unlock() // handlers may still run
			w.until("no lane is left", func() bool { return w.count("SELECT count(*) FROM edda.lane") == 0 })
			s.mu.Lock()
		})
	}
}

// The claims of a dead process are due when its lease has ended, and come before the messages parked behind them.
func TestLanesOfTheDeadAreTakenOver(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Lease: 5 * time.Second,
		Poll: 20 * time.Millisecond}, s.part())
	w.makeQueue("turns")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sendTurns(1, 4, nil)
	table, queue := w.queue("turns"), w.count("SELECT id FROM edda.queue")
	w.exec(`INSERT INTO edda.lane (queue, key, owner, session, until)
		VALUES ($1, 'key-0', gen_random_uuid(), '00000000-0000-4000-8000-000000000001',
		clock_timestamp() + interval '300 ms')`, queue)
	w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, 'nothing', gen_random_uuid(),
		clock_timestamp())`, queue)
	w.exec(`UPDATE ` + table + ` SET was_due = due, due = clock_timestamp() + interval '301 ms', claim = 1, owner = ` +
		`'00000000-0000-4000-8000-000000000001' WHERE body = convert_to('{"Key":"key-0","N":0,"Fail":0}', 'UTF8')`)
	w.run(e)
	w.wantTurns(s, 1, 4, true)
}

// A process that stops releases the messages that wait in its lanes. Their leases end in an hour.
func TestStopGivesBackWhatWaitsInLanes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s, g := newTurns(), newGate(t)
	o := bus.EndpointOptions{Ordered: bus.Strict, Lease: time.Hour, Poll: 20 * time.Millisecond}
	e, _ := w.preparedTurns(s, o, 1, 5)
	stopping := w.endpoint("turns", o, bus.Handle(func(ctx *bus.Context, m turn) error {
		g.pass()
		return s.handle(ctx, m)
	}, bus.KeyedBy(func(m turn) string { return m.Key })))
	stop := w.run(stopping)
	await(w, "the first turn", g.came)
	w.until("all are claimed", func() bool {
		return w.count("SELECT count(*) FROM "+w.queue("turns")+" WHERE owner IS NOT NULL") == 5
	})
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	w.until("the others are given back or parked", func() bool {
		return w.count("SELECT count(*) FROM "+w.queue("turns")+" WHERE owner IS NOT NULL") == 1
	})
	g.open()
	<-stopped
	w.run(e)
	w.wantTurns(s, 1, 5, true)
}

func TestParkedAloneAreNotForgotten(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Overtaking, Lease: 5 * time.Second,
		Poll: 20 * time.Millisecond}, s.part())
	w.makeQueue("turns")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sendTurns(1, 100, nil)
	table, queue := w.queue("turns"), w.count("SELECT id FROM edda.queue")
	w.exec(`INSERT INTO edda.parked SELECT $1, 'key-0', due, id, sent, first_failed, attempt, conflict, kind, header,
		body FROM `+table, queue)
	w.exec(`DELETE FROM ` + table)
	w.exec(`INSERT INTO edda.lane (queue, key, owner, until) VALUES ($1, 'key-0', gen_random_uuid(),
		clock_timestamp())`, queue)
	w.run(e)
	w.wantTurns(s, 1, 100, true)
}

func TestOrderIsCheckedAtOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	key := bus.KeyedBy(func(m turn) string { return m.Key })
	handler := func(*bus.Context, turn) error { return nil }
	for name, e := range map[string]struct {
		order bus.Ordering
		part  bus.Part
	}{
		"no key":    {bus.Strict, bus.Handle(handler)},
		"no order":  {bus.Unordered, bus.Handle(handler, key)},
		"a saga":    {bus.Overtaking, bus.Saga(tallies(saga.Pessimistic, nil))},
		"too large": {9, bus.Handle(handler, key)},
	} {
		if _, err := bus.NewEndpoint(w.bus, "turns", bus.EndpointOptions{Ordered: e.order}, e.part); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := bus.NewEndpoint(w.bus, "turns", bus.EndpointOptions{Ordered: bus.Strict, ClusterConcurrency: 3},
		bus.Handle(handler, key)); err == nil {
		t.Error("a limit of an ordered endpoint was accepted")
	}
	w.start("turns", bus.EndpointOptions{Ordered: bus.Strict}, bus.Handle(handler, key))
	for _, bytes := range []int{0, 512, 513} {
		w.send(turn{Key: strings.Repeat("k", bytes)})
	}
	w.untilEmpty("turns")
	w.wantText("0, 513", "SELECT string_agg(substring(error FROM 'key has (.*) bytes'), ', ' ORDER BY length(body)) "+
		"FROM edda.dead_letter WHERE reason = 'permanent'")
}
