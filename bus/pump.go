package bus

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
)

// pump decides when the workers of an endpoint take, where in the queue, and how much. Workers are all
// alike: an idle one waits for a wake-up, takes until a take comes back empty, and is idle again. A full
// take wakes one more. Safe for concurrent use.
type pump struct {
	poll     time.Duration
	batchMax int
	wakeups  chan struct{} // of capacity 1: a wake-up that meets no idle worker is kept for the next one
	alarm    chan struct{} // the next timer has changed

	mu       sync.Mutex
	busy     int            // workers that are not idle
	idle     int            // workers that wait
	next     time.Time      // when tick wakes a worker unasked
	limit    int            // messages of the next take
	ceiling  float64        // trouble lowers it, success raises it again: 1 … batchMax
	cursor   queue.Position // where the last full take of this process ended
	cursorAt time.Time
	headAt   time.Time // when a take last began at the head

	ended      chan struct{} // closed and replaced whenever a batch ends
	halted     bool          // the endpoint is paused: no batch begins
	taking     int           // batches that have begun and not taken yet
	quiet      chan struct{} // closed when there is none of them; nil while nobody waits
	noHelpTill time.Time     // no helper is called before, since the last one found nothing it could do
	strolling  bool          // a helper that found nothing looks further behind: one is enough

	seats   chan struct{} // of capacity 1: the limit has changed
	seeking bool          // a worker waits for a seat: one is enough
}

const (
	firstLimit  = 64
	cursorFor   = 100 * time.Millisecond
	helpFirst   = 5 * time.Millisecond
	helpMost    = 100 * time.Millisecond
	parkFor     = 50 * time.Millisecond
	growOnGood  = 1.1
	shrinkOnBad = 0.5
)

func newPump(o EndpointOptions) *pump {
	p := &pump{
		poll: o.Poll, batchMax: o.BatchMax, wakeups: make(chan struct{}, 1), alarm: make(chan struct{}, 1),
		limit: min(firstLimit, o.BatchMax), ceiling: float64(o.BatchMax), ended: make(chan struct{}),
		seats: make(chan struct{}, 1),
	}
	p.wake()
	return p
}

// wake lets one idle worker take. It never blocks. It tells whether one was idle. While the workers that are not
// idle have all the instances there are messages for, an idle one is only woken when that may have changed.
func (p *pump) wake() bool {
	p.mu.Lock()
	idle, wait := p.idle > 0, time.Time{}
	if p.busy > 0 && time.Now().Before(p.noHelpTill) {
		wait = p.noHelpTill
	}
	p.mu.Unlock()
	if !wait.IsZero() {
		p.wakeAt(wait)
		return idle
	}
	select {
	case p.wakeups <- struct{}{}:
	default:
	}
	return idle
}

// wakeAt lets a worker take at t, or at the next poll if that comes first.
func (p *pump) wakeAt(t time.Time) {
	p.mu.Lock()
	sooner := t.Before(p.next)
	if sooner {
		p.next = t
	}
	p.mu.Unlock()
	if sooner {
		p.rearm()
	}
}

func (p *pump) rearm() {
	select {
	case p.alarm <- struct{}{}:
	default:
	}
}

// tick polls: it wakes a worker at the next moment that is known, at the latest after a poll interval.
func (p *pump) tick(ctx context.Context) error {
	for {
		p.mu.Lock()
		now := time.Now()
		if limit := now.Add(run.Jitter(p.poll)); p.next.IsZero() || p.next.After(limit) {
			p.next = limit
		}
		wait := p.next.Sub(now)
		p.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.alarm:
			timer.Stop()
			continue
		case <-timer.C:
		}
		p.mu.Lock()
		p.next = time.Time{}
		p.mu.Unlock()
		p.wake()
	}
}

// await parks a worker until it is wanted. It returns false when ctx has ended.
func (p *pump) await(ctx context.Context) bool {
	p.mu.Lock()
	p.idle++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.idle--
		p.mu.Unlock()
	}()
	select {
	case <-p.wakeups:
		if ctx.Err() != nil {
			p.wake() // it was meant for somebody who works on
			return false
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// order is what a worker is to take.
type order struct {
	limit  int
	after  queue.Position
	helper bool // another worker of this process was at work when it began
	alone  bool // for one suspect, see careful.go
}

// halt keeps every batch from beginning that has not begun, or ends that. When the channel that it returns is closed,
// or nil, those that had begun have taken what they will.
func (p *pump) halt(halted bool) (quiet <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = halted
	if halted && p.taking > 0 && p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	return p.quiet
}

// begin is called before a take; without a limit in its order there is to be none. behind is where a helper goes on
// that left what it saw to others.
func (p *pump) begin(behind queue.Position) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted {
		return order{}
	}
	p.busy++
	p.taking++
	o := order{limit: max(1, min(p.limit, int(p.ceiling))), helper: p.busy > 1}
	switch {
	case behind != queue.Position{}:
		o.after = behind
	case o.helper && time.Since(p.cursorAt) < cursorFor && time.Since(p.headAt) < cursorFor:
		o.after = p.cursor // the head is in the hands of our own workers: do not walk it again
	default:
		// what was left there, or was committed late, is found even if there is always another one at work
		p.headAt = time.Now()
	}
	return o
}

// taken is called after a take, with nothing when that failed. A full one moves the cursor and asks for help.
func (p *pump) taken(o order, got int, last queue.Position) {
	if o.alone {
		return // it says nothing about the queue
	}
	p.mu.Lock()
	p.endTaking()
	full := got >= o.limit
	if full {
		p.cursor, p.cursorAt = last, time.Now()
		p.limit = min(2*p.limit, p.batchMax)
	} else {
		p.cursorAt = time.Time{}
	}
	help := full && p.idle > 0 && time.Now().After(p.noHelpTill)
	p.mu.Unlock()
	if help {
		p.wake()
	}
}

// unseated is called in place of taken when the take was not allowed, which says nothing about the queue.
func (p *pump) unseated() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTaking()
}

func (p *pump) endTaking() {
	if p.taking--; p.taking == 0 && p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// report is how a batch ended.
type report struct {
	taken   int
	handled int  // messages that left the queue
	busy    int  // messages left because their instance was in other hands
	late    bool // the time budget ended before the batch did
	failed  bool // rolled back by an error that a smaller batch may avoid
	seat    *limit.Seat
	outrun  bool // others took its messages before it could run them

	done     int   // messages whose handlers have succeeded
	failures int   // attempts that failed, those within the batch included
	failure  error // the last of them
}

// finish is called after a batch.
func (p *pump) finish(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	close(p.ended)
	p.ended = make(chan struct{})
	switch {
	case r.failed:
		if r.taken > 0 { // else the take itself has failed, and a smaller one may go better
			p.ceiling = min(p.ceiling, float64(r.taken))
		}
		p.ceiling = max(1, p.ceiling*shrinkOnBad)
	case r.handled > 0:
		p.ceiling = min(p.ceiling*growOnGood+0.1, float64(p.batchMax))
	}
	if r.late {
		p.limit = max(1, 2*r.handled)
	}
}

// useless tells of a take that was, for the most part, for instances that other workers had.
func (r report) useless() bool { return r.busy > 0 && 2*r.busy >= r.taken }

// noHelpFor stops calling helpers for a while. It tells whether the caller is the one to look further behind, until it
// calls strolled.
func (p *pump) noHelpFor(d time.Duration) (stroll bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noHelpTill = time.Now().Add(d)
	stroll = !p.strolling
	p.strolling = true
	return stroll
}

func (p *pump) strolled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strolling = false
}

// untilEnded waits until ready holds, looking whenever a batch of this process ends. It tells whether it did in time.
func (p *pump) untilEnded(ctx context.Context, most time.Duration, ready func() bool) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ended := p.ended
		p.mu.Unlock()
		if ready() {
			return true
		}
		select {
		case <-ended:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// park makes a worker that could do nothing wait: until another one's batch has ended, or a little while.
func (p *pump) park(ctx context.Context) {
	p.mu.Lock()
	ended, others := p.ended, p.busy
	p.mu.Unlock()
	if others == 0 {
		ended = nil
	}
	timer := time.NewTimer(run.Jitter(parkFor))
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}
