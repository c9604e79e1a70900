package bus_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// gauge counts how many callers are inside, and remembers the maximum.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) enter() {
	now := g.now.Add(1)
	for old := g.most.Load(); now > old && !g.most.CompareAndSwap(old, now); old = g.most.Load() {
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// meeting keeps all callers inside until want of them have been inside at a time.
type meeting struct {
	gauge
	want int32
	met  chan struct{}
	once sync.Once
}

func newMeeting(n int32) *meeting { return &meeting{want: n, met: make(chan struct{})} }

// visit stays a little longer, so that a surplus caller would overlap.
func (m *meeting) visit() {
	m.enter()
	defer m.leave()
	if m.most.Load() >= m.want {
		m.once.Do(func() { close(m.met) })
	}
	<-m.met
	<-time.After(5 * time.Millisecond)
}

func TestNoMoreLeasedHandlersThanTheLimit(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var g gauge
	var mu sync.Mutex
	epochs := map[int]map[int64]bool{}
	part := bus.Handle(func(ctx *bus.Context, _ call) error {
		g.enter()
		defer g.leave()
		no, epoch := ctx.Slot()
		mu.Lock()
		if epochs[no] == nil {
			epochs[no] = map[int64]bool{}
		}
		if epochs[no][epoch] || no == 0 {
			t.Errorf("slot %d, epoch %d: given twice, or not at all", no, epoch)
		}
		epochs[no][epoch] = true
		mu.Unlock()
		<-time.After(3 * time.Millisecond)
		return nil
	})
	o := bus.EndpointOptions{ClusterConcurrency: 3, Poll: 50 * time.Millisecond}
	w.start("callers", o, part)
	for range 2 {
		w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "callers", o, part)
	}
	w.sendMany(120)
	w.untilEmpty("callers")
	if g.most.Load() > 3 {
		t.Errorf("%d handlers ran at a time", g.most.Load())
	}
	w.until("every slot is free", func() bool {
		return w.count(
			"SELECT count(*) FROM edda.slot WHERE holder IS NOT NULL") == 0
	})
}

// A limit that is set while handlers run applies to handlers that begin after it.
func TestLimitOfLeasedHandlersIsSetWhileTheyRun(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var g gauge
	gate := make(chan struct{})
	w.start("callers", bus.EndpointOptions{ClusterConcurrency: 1, Poll: 50 * time.Millisecond},
		bus.Handle(func(*bus.Context, call) error {
			g.enter()
			defer g.leave()
			<-gate
			return nil
		}))
	w.sendMany(8)
	w.until("one runs", func() bool { return g.now.Load() == 1 })
	if err := w.operator().Limits().Set(t.Context(), "callers", 4); err != nil {
		t.Fatal(err)
	}
	w.until("four run", func() bool { return g.now.Load() == 4 })
	if err := w.operator().Endpoints().Pause(t.Context(), "callers", "by a test"); err != nil {
		t.Fatal(err)
	}
	w.until("the pause is told", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	for range 4 {
		gate <- struct{}{}
	}
	w.until("none runs", func() bool { return g.now.Load() == 0 })
	w.until("four were handled", func() bool { return w.rows("callers") == 4 })
	if err := w.operator().Endpoints().Resume(t.Context(), "callers"); err != nil {
		t.Fatal(err)
	}
	close(gate)
	w.untilEmpty("callers")
	if g.most.Load() != 4 {
		t.Errorf("%d ran at most, want 4", g.most.Load())
	}
}

// A handler that lost its slot cannot write anything.
func TestSlotOfAnotherEndsNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	keep(w)
	began, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var runs atomic.Int32
	w.start("callers", bus.EndpointOptions{ClusterConcurrency: 1, Lease: 30 * time.Second, Poll: 50 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m call) error {
			runs.Add(1)
			once.Do(func() { close(began) })
			<-end
			ctx.Send(called(m))
			return nil
		}))
	w.send(call{})
	<-began
	w.exec("UPDATE edda.slot SET epoch = epoch + 1, holder = 'somebody else', expires = clock_timestamp() + " +
		"interval '1 hour'")
	close(end)
	w.until("the claim was lost", func() bool { return len(eventsOf[event.ClaimLost](w)) == 1 })
	w.want(0, "SELECT count(*) FROM edda.kept")
	w.want(1, "SELECT count(*) FROM "+w.queue("callers"))
	w.want(1, "SELECT count(*) FROM edda.slot WHERE holder = 'somebody else'")
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times", runs.Load())
	}
}

// A claim is lost, and its handler had a slot. The slot is free when the process stops, not when the lease ends.
func TestRunGivesBackTheSlotsOfLostClaims(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	stop := w.start("callers", bus.EndpointOptions{ClusterConcurrency: 1, Lease: time.Hour},
		bus.Handle(func(*bus.Context, call) error { g.pass(); return nil }))
	w.send(call{})
	await(w, "the handler", g.came)
	w.exec("UPDATE " + w.queue("callers") + " SET claim = claim + 1")
	g.open()
	untilTold[event.ClaimLost](w, 1)
	stop()
	w.want(0, "SELECT count(*) FROM edda.slot WHERE holder IS NOT NULL")
}

func TestSlotIsKeptWhileTheHandlerRuns(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var g gauge
	w.start("callers", bus.EndpointOptions{ClusterConcurrency: 1, Lease: 3 * time.Second, Poll: 20 * time.Millisecond},
		bus.Handle(func(*bus.Context, call) error {
			g.enter()
			defer g.leave()
			<-time.After(4 * time.Second)
			return nil
		}))
	w.sendMany(2)
	w.untilEmpty("callers")
	if lost := eventsOf[event.ClaimLost](w); g.most.Load() != 1 || len(lost) > 0 {
		t.Errorf("%d handlers ran at a time, %d claims were lost", g.most.Load(), len(lost))
	}
}

func TestAHandlerWithoutALimitHasNoSlot(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	got := make(chan int64, 2)
	w.start("callers", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ call) error {
		no, epoch := ctx.Slot()
		got <- int64(no) + epoch
		return nil
	}))
	w.start("keepers", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ called) error {
		no, epoch := ctx.Slot()
		got <- int64(no) + epoch
		return nil
	}))
	w.send(call{})
	w.send(called{})
	for range 2 {
		if n := <-got; n != 0 {
			t.Errorf("a slot: %d", n)
		}
	}
}
