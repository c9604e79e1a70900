package batch

import (
	"context"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
)

// pump decides when the workers of an endpoint take, where in the queue, and how much. All workers are alike: an idle
// one waits for a wake-up, takes until a take comes back empty, and is idle again. A full take wakes one more. Safe
// for concurrent use.
type pump struct {
	*wake.Alarm
	batchMax int

	mu       sync.Mutex
	busy     int            // workers that are not idle
	limit    int            // messages of the next take
	ceiling  float64        // errors lower it, success raises it again: 1 … batchMax
	cursor   queue.Position // where the last full take of this process ended
	cursorAt time.Time
	headAt   time.Time // when a take last began at the head

	ended      chan struct{} // closed and replaced whenever a batch ends
	halted     bool          // the endpoint is paused: no batch begins
	taking     int           // batches that have begun and not yet taken
	quiet      chan struct{} // closed when taking is 0; nil while no worker waits
	noHelpTill time.Time     // no helper is called before this time, since the last one found nothing to do
	backingOff bool          // a helper that found nothing waits to look further behind: one is enough

	seeking bool // a worker waits for a permit: one is enough
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

func newPump(a *wake.Alarm, batchMax int) *pump {
	return &pump{
		Alarm: a, batchMax: batchMax,
		limit: min(firstLimit, batchMax), ceiling: float64(batchMax), ended: make(chan struct{}),
	}
}

// Wake wakes one idle worker to take. It never blocks. It reports whether a worker was idle. While the busy workers
// have all instances that there are messages for, Wake wakes an idle one only when that may have changed.
func (p *pump) Wake() (idle bool) {
	p.mu.Lock()
	wait := p.busy > 0 && time.Now().Before(p.noHelpTill)
	till := p.noHelpTill
	p.mu.Unlock()
	if wait {
		p.WakeAt(till)
		return p.Idle()
	}
	return p.Alarm.Wake()
}

// order says what a worker is to take.
type order struct {
	limit  int
	after  queue.Position
	helper bool // a different worker of this process was busy when it began
	alone  bool // take one suspect, see quarantine.go
}

// halt stops further batches from beginning, or allows them again. The channel that it returns is closed when every
// batch that had begun has done its take; it is nil if no take is in flight.
func (p *pump) halt(halted bool) (quiet <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = halted
	if halted && p.taking > 0 && p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	return p.quiet
}

// begin is called before a take; an order without a limit means that there is to be no take. behind is the position
// after which a helper takes, if it left the messages before it to other workers.
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
		o.after = p.cursor // our own workers have the head: do not walk it again
	default:
		// finds messages that were left there, or were committed late, even if a worker is always busy
		p.headAt = time.Now()
	}
	return o
}

// taken is called after a take, with got 0 if the take failed. A full take moves the cursor and calls a helper.
func (p *pump) taken(o order, got int, last queue.Position) {
	p.mu.Lock()
	p.endTaking()
	if o.alone {
		p.mu.Unlock()
		return // the take of a single message shows nothing about the queue
	}
	full := got >= o.limit
	if full {
		p.cursor, p.cursorAt = last, time.Now()
		p.limit = min(2*p.limit, p.batchMax)
	} else {
		p.cursorAt = time.Time{}
	}
	help := full && p.Idle() && time.Now().After(p.noHelpTill)
	p.mu.Unlock()
	if help {
		p.Wake()
	}
}

// refused is called in place of taken if the take got no permit: that shows nothing about the queue.
func (p *pump) refused() {
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

// report describes how a batch ended.
type report struct {
	outcome.Report
	late    bool // the time budget ended before the batch did
	failed  bool // rolled back by an error that a smaller batch may avoid
	failing bool // it committed failures and no success
	permit  *bool
	outrun  bool // other workers took its messages before it could run them
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
		if r.Taken > 0 { // otherwise the take itself has failed, and a smaller one may succeed
			p.ceiling = min(p.ceiling, float64(r.Taken))
		}
		p.ceiling = max(1, p.ceiling*shrinkOnBad)
	case r.Handled > 0:
		p.ceiling = min(p.ceiling*growOnGood+0.1, float64(p.batchMax))
	}
	if r.late {
		p.limit = max(1, 2*r.Handled)
	}
}

// useless reports that a take was, for the most part, for instances that other workers had.
func (r report) useless() bool { return r.Busy > 0 && 2*r.Busy >= r.Taken }

// noHelpFor stops calls of helpers for a while. It reports whether the caller is the worker that is to look further
// behind, until it calls backedOff.
func (p *pump) noHelpFor(d time.Duration) (backOff bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noHelpTill = time.Now().Add(d)
	backOff = !p.backingOff
	p.backingOff = true
	return backOff
}

func (p *pump) backedOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backingOff = false
}

// untilEnded waits until ready holds. It calls ready whenever a batch of this process ends, and at the time that
// ready returns. It reports whether ready held in time.
func (p *pump) untilEnded(
	ctx context.Context, most time.Duration, ready func() (ready bool, again time.Duration),
) bool {
	for until := time.Now().Add(most); ; {
		p.mu.Lock()
		ended := p.ended
		p.mu.Unlock()
		is, again := ready()
		if is {
			return true
		}
		wait := time.Until(until)
		if again > 0 {
			wait = min(wait, again)
		}
		switch run.Wait(ctx, wait, ended) {
		case run.Ended:
			return false
		case run.TimedOut:
			if again == 0 || !time.Now().Before(until) {
				return false
			}
		}
	}
}

// park makes a worker that could do nothing wait until a batch of a different worker has ended, or a short time.
func (p *pump) park(ctx context.Context) {
	p.mu.Lock()
	ended, others := p.ended, p.busy
	p.mu.Unlock()
	if others == 0 {
		ended = nil
	}
	run.Wait(ctx, run.Jitter(parkFor), ended)
}
