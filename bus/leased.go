package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

// leased runs the handlers of one endpoint outside of transactions. Three loops share its state: one claims messages,
// one finishes those whose handlers have ended, one extends the leases of the others. Each has one statement on its way
// at a time, and what comes up meanwhile goes with its next.
type leased struct {
	*Endpoint
	pool     *pg.Pool
	owner    saga.ID         // of this Run, in lanes and slots; rows have that of the session
	work     context.Context // of the handlers
	taking   context.Context // of the claims, set before the first
	handling *run.Group
	// somewhat less than patience, as Postgres reads it: its word tells more than a context that has ended
	bound string
	// held by the claim in order, the finish or the sweep that decides about lanes; an extension never waits for it
	rows     sync.Mutex
	over     chan struct{} // of capacity 1: something has ended
	room     chan struct{} // of capacity 1: there may be room for more
	beat     chan struct{} // of capacity 1: extend at once, somebody has cancelled a message
	sooner   chan struct{} // of capacity 1: a claim is trusted for a shorter time than distrust wants to wait
	losses   chan struct{} // of capacity 1: there is something to tell
	restless time.Duration // a suspect waited for rest so long, and in vain; of the loop that claims
	closed   chan struct{} // no handler runs any more, and none will
	finished chan struct{} // and everything is finished

	claiming  sync.Mutex // held while a claim is on its way
	extending sync.Mutex // held while an extension is on its way, which is bounded; guards claimed.rows

	asideTried time.Time // when a message that others waited for was last tried; of the loop that finishes

	mu         sync.Mutex            // never held while anything waits
	held       map[*claimed]struct{} // every claim of this Run, from its taking to its finish
	waiting    []*claimed            // claimed, and no handler runs yet
	running    int
	suspects   []*claimed // their processes died, and each is to be run alone
	facing     bool       // one of them is faced: no lane goes on
	ended      []*claimed
	lanes      map[string]*lane // by key, of an ordered endpoint
	untold     []*claimed       // lost, and nobody has been told
	stopping   bool
	lastFailed bool // the last finish had failures and no success
	most       int  // handlers at a time, 0 while the endpoint is paused
	handled    int  // since Run began
	ahead      int  // how many handlers will end while the next claim is on its way
	last       flight
	clock      reading   // of the database's clock, the last one
	watched    time.Time // when distrust looks again
}

// reading is what the database's clock showed to a statement that was sent at a moment of ours.
type reading struct{ theirs, ours time.Time }

// clockNow is an upper bound of the database's clock.
func (l *leased) clockNow(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.theirs.Add(now.Sub(l.clock.ours))
}

func (l *leased) noteClock(theirs, ours time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock = reading{theirs, ours}
}

// claimed is a message in the hands of a leased endpoint.
type claimed struct {
	message
	batch *batch // what it was claimed with

	slot      *limit.Slot // of the endpoint's limit, nil when it has none
	key       string      // of its lane, "" when it has none
	lane      *lane       // that it was claimed for, nil when it was entered with this claim
	before    saga.ID     // the session that had it when its lease ended; zero when none did
	crashes   suspect     // the processes that died with it in hand
	died      bool        // the last of these is that of before; this claim or a revival of its lane has counted it
	diedAlone bool        // with nothing else in hand
	number    int         // of the claim
	// the due of its row: the end of the lease. Several when the outcome of an extension is unknown
	rows []time.Time
	// by this process's clock, before the last statement that is known to have extended the lease; guarded by leased.mu
	renewed  time.Time
	moving   bool // a statement that is on its way may move its row: no extension may; guarded by leased.mu
	begun    time.Time
	cancel   context.CancelCauseFunc // while its handler runs
	failures int                     // attempts of this claim that failed
	failure  error                   // the last of them
	pauses   bool                    // its policy pauses the endpoint
	// its handler has begun, and gives signs of life for its run; guarded by leased.mu
	beats   bool
	release bool // it goes back as it was, with nothing known against it
	tried   bool // a finish was sent, and its outcome is unknown
	// a finish with it waited for a lock in vain, or took too long: it is finished alone; guarded by leased.mu
	aside    bool
	troubles int       // finishes of it alone that failed in a row
	timedOut time.Time // when one of these counted that took too long
	success  *message  // what it was before such trouble made a failure of it
}

func newLeased(work context.Context, e *Endpoint, pool *pg.Pool) *leased {
	l := &leased{
		Endpoint: e, pool: pool, owner: newID(), most: e.knobs.workers(e.knobs.now()), work: work,
		handling: run.NewGroup(work), held: map[*claimed]struct{}{}, lanes: map[string]*lane{},
		over: make(chan struct{}, 1), room: make(chan struct{}, 1), beat: make(chan struct{}, 1),
		sooner: make(chan struct{}, 1), losses: make(chan struct{}, 1),
		closed: make(chan struct{}), finished: make(chan struct{}),
	}
	l.bound = fmt.Sprint((l.patience() * 3 / 4).Milliseconds(), " ms")
	return l
}

// runLeased is runWorkers for an endpoint with Handle.
func (e *Endpoint) runLeased(ctx context.Context, pool *pg.Pool) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	e.pump, e.brake = newPump(e.options), newBrake(e.options)
	l := newLeased(work, e, pool)
	e.bus.hub.attach(e.queue.id, e.pump, e.knobs)
	defer e.bus.hub.detach(e.queue.id, e.pump, e.knobs)
	e.bus.hub.attachBeat(e.queue.id, l.beat)
	defer e.bus.hub.detachBeat(e.queue.id, l.beat)

	side := run.NewGroup(ctx)
	side.Go(e.pump.tick)
	side.Go(e.follow)
	side.Go(l.followKnobs)
	side.Go(e.bus.clean)
	alive := run.NewGroup(work) // as long as handlers run, a drain included
	alive.Go(e.bus.session.keep)
	alive.Go(l.tellAll)
	if e.bus.wakeup == Notify {
		alive.Go(e.bus.listen)
	}
	e.bus.session.awaitLock(ctx)
	if e.options.Ordered != Unordered {
		side.Go(l.sweepLanes)
	} else {
		side.Go(e.unpark)
	}
	side.Go(func(ctx context.Context) error { return e.awaitLimit(ctx, e.bus.pool) })
	side.Go(e.writeCounters)
	loops := run.NewGroup(ctx)
	loops.Go(func(taking context.Context) error {
		err := l.claimAll(taking)
		l.endHandlers()
		cancel(nil)
		return err
	})
	loops.Go(func(context.Context) error {
		defer l.bidFarewell(context.WithoutCancel(ctx))
		return l.finishAll(context.WithoutCancel(ctx))
	})
	loops.Go(func(context.Context) error { return l.extendAll(context.WithoutCancel(ctx)) })
	loops.Go(l.distrustAll)
	loops.Go(func(taking context.Context) error { e.drain(taking, work, cancel); return nil })
	err := loops.Wait()
	if err == nil && errors.Is(context.Cause(work), ErrDrain) {
		err = ErrDrain
	}
	side.Stop()
	err = errors.Join(err, side.Wait(), alive.Wait())
	l.tell()
	e.flushCounters(ctx)
	return err
}

// start hands messages to handlers, as many as may run, and keeps the others for those that end. A message that a new
// handler gets is counted with those that run from here on: wanted must not count it among those that wait as well.
func (l *leased) start(claims []*claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, claims...)
	for range min(l.atOnce()-l.running, len(l.waiting)) {
		l.running++
		first := l.takeWaiting()
		l.handling.Go(func(work context.Context) error { l.runOneAfterAnother(work, first); return nil })
	}
}

func (l *leased) runOneAfterAnother(work context.Context, c *claimed) {
	for ; c != nil; c = l.next() {
		l.handle(work, c)
	}
}

// takeWaiting is the first message that waits. The caller holds mu.
func (l *leased) takeWaiting() *claimed {
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c
}

// next is the message for a handler that is free, nil when there is none.
func (l *leased) next() *claimed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.running > max(l.atOnce(), 1) {
		l.running--
		signal(l.room)
		return nil
	}
	return l.takeWaiting()
}

// begin notes that the handler of c runs. It tells whether c is still ours.
func (l *leased) begin(c *claimed, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ours := l.held[c]; !ours || !time.Now().Before(l.trusted(c)) {
		return false // lost already, or the process stood still meanwhile
	}
	c.cancel = cancel
	return true
}

// end hands c to the loop that finishes.
func (l *leased) end(c *claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.cancel = nil
	if _, ours := l.held[c]; ours {
		l.ended = append(l.ended, c)
		l.handled++
		signal(l.over)
	}
}

// lose gives c up, and with it everything of its lane: it may be in other hands. A handler that runs is told to stop,
// and whatever it returns is not written.
//
// The log and the events are told by tellAll: a user's function must not hold up the extensions.
func (l *leased) lose(c *claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseNow(c)
}

// loseNow is lose for a caller that holds mu.
func (l *leased) loseNow(c *claimed) {
	l.untold = append(l.untold, l.drop(c)...)
	signal(l.losses)
}

// tell tells of the claims that were lost, to the log and to those who want events.
func (l *leased) tell() {
	l.mu.Lock()
	lost := l.untold
	l.untold = nil
	l.mu.Unlock()
	for _, c := range lost {
		l.bus.log.Warn("edda: a claim was lost", "endpoint", l.name, "message_id", c.id.String(), "kind",
			shownKind(c.kind), "attempt", c.delivery.Info.Attempt)
		l.bus.emit(ClaimLost{Endpoint: l.name, Info: shownInfo(c.delivery.Info)})
	}
}

// loseLane gives up what is left of a lane that is not ours any more.
func (l *leased) loseLane(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lanes[key]
	var left []*claimed
	if n != nil {
		left = slices.Clone(n.waiting)
		if n.running != nil {
			left = append(left, n.running)
		}
		if len(left) == 0 {
			delete(l.lanes, key)
		}
	}
	if len(left) > 0 {
		l.loseNow(left[0])
	}
}

// drop forgets c and the rest of its lane. The caller holds mu.
func (l *leased) drop(c *claimed) (lost []*claimed) {
	if _, ours := l.held[c]; !ours {
		return nil // its lane may be another one by now
	}
	all := []*claimed{c}
	if n := l.lanes[c.key]; n != nil {
		all = append(all, n.waiting...)
		if n.running != nil && n.running != c {
			all = append(all, n.running)
		}
		delete(l.lanes, c.key)
	}
	for _, c := range all {
		if _, ours := l.held[c]; !ours || c.moving && c != all[0] { // what a finish has in hand is its to judge
			continue
		}
		delete(l.held, c)
		lost = append(lost, c)
		l.waiting = slices.DeleteFunc(l.waiting, func(w *claimed) bool { return w == c })
		l.ended = slices.DeleteFunc(l.ended, func(e *claimed) bool { return e == c })
		l.suspects = slices.DeleteFunc(l.suspects, func(s *claimed) bool { return s == c })
		if c.cancel != nil {
			c.cancel(ErrClaimLost)
		}
	}
	signal(l.room)
	return lost
}

// endHandlers gives back what has not begun, and waits for the rest.
func (l *leased) endHandlers() {
	l.mu.Lock()
	l.stopping = true
	for _, c := range l.waiting {
		c.release = true
		l.ended = append(l.ended, c)
	}
	l.waiting = nil
	for _, n := range l.lanes {
		for _, c := range n.waiting {
			c.release = true
			l.ended = append(l.ended, c)
		}
	}
	for _, c := range l.suspects {
		c.release = true
		l.ended = append(l.ended, c)
	}
	l.suspects = nil
	signal(l.over)
	l.mu.Unlock()
	_ = l.handling.Wait() // they return no errors
	close(l.closed)
}

// signal sets a flag that somebody waits for. It never blocks.
func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}
