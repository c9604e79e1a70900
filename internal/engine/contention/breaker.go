package contention

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
)

// Breaker slows an endpoint of this process down while nothing succeeds: one worker tries one message at a time, with
// a pause after each failure. The first message that is handled ends this state, and all workers continue at once. It
// counts batches: a batch with a handled message has succeeded, whatever else failed in it. Safe for concurrent use.
//
// While messages are handled it costs an atomic addition and two atomic loads for each batch.
type Breaker struct {
	Handled atomic.Int64 // messages, since Run began

	after int64         // failed attempts without a success in between
	pause time.Duration // and at least this time after the first of them

	failed atomic.Int64 // attempts, since a message was handled
	slow   atomic.Bool
	trying chan struct{} // has capacity 1: held by the worker that tries

	mu    sync.Mutex
	first time.Time     // when the first of failed was; mu guards it and the fields below
	since time.Time     // when the slow state began
	over  chan struct{} // closed when it ends
}

// NewBreaker returns a closed Breaker. It opens after the given number of failed attempts without a success in
// between, and at least pause after the first of them.
func NewBreaker(failures int, pause time.Duration) *Breaker {
	return &Breaker{after: int64(failures), pause: pause, trying: make(chan struct{}, 1)}
}

// Slow reports whether the breaker is open: one message is to be tried at a time.
func (b *Breaker) Slow() bool { return b.slow.Load() }

// Admit waits until the caller may take. It reports whether the caller is the worker that tries, which then calls
// Release.
func (b *Breaker) Admit(ctx context.Context) (tries, ok bool) {
	for b.slow.Load() {
		select {
		case b.trying <- struct{}{}:
			if b.slow.Load() {
				return true, true
			}
			<-b.trying
		case <-b.ended():
		case <-ctx.Done():
			return false, false
		}
	}
	return false, true
}

// Pause waits after a failure, unless a message succeeds in the meantime. It returns false if ctx has ended.
func (b *Breaker) Pause(ctx context.Context) bool {
	return run.Wait(ctx, b.pause, b.ended()) != run.Ended
}

func (b *Breaker) ended() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// Release lets the next worker try. After a failure the pause comes first, unless a message succeeds in the meantime.
func (b *Breaker) Release(ctx context.Context, failed bool) {
	defer func() { <-b.trying }()
	if failed && b.slow.Load() {
		b.Pause(ctx)
	}
}

// Change says how a batch changed the pace.
type Change uint8

// Changes of the pace.
const (
	Same Change = iota
	Slowed
	Recovered
)

// Note counts the results of a committed batch. It returns whether they changed the pace, and how many attempts have
// failed in a row, or how long the endpoint was slow.
func (b *Breaker) Note(handled, failed int) (c Change, failures int64, slowFor time.Duration) {
	switch {
	case handled > 0:
		b.Handled.Add(int64(handled))
		if b.failed.Load() == 0 {
			return Same, 0, 0
		}
		return b.succeed()
	case failed > 0:
		return b.fail(int64(failed))
	}
	return Same, 0, 0
}

func (b *Breaker) succeed() (Change, int64, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed.Store(0)
	if !b.slow.Load() {
		return Same, 0, 0
	}
	b.slow.Store(false)
	close(b.over)
	return Recovered, 0, time.Since(b.since)
}

func (b *Breaker) fail(n int64) (Change, int64, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	failures := b.failed.Add(n)
	if failures == n {
		b.first = now
	}
	if failures < b.after || now.Sub(b.first) < b.pause || b.slow.Load() {
		return Same, 0, 0
	}
	b.since, b.over = now, make(chan struct{})
	b.slow.Store(true)
	return Slowed, failures, 0
}

// Patience computes how long a loop waits after a transaction was lost: longer after each failure in a row. It
// belongs to one goroutine.
type Patience struct{ pauses run.Pauses }

// NewPatience returns a Patience without failures so far.
func NewPatience() Patience {
	return Patience{run.Pauses{First: 20 * time.Millisecond, Most: 5 * time.Second}}
}

// After is run.Pauses.After, with a very short pause if a new try is likely to succeed at once.
func (p *Patience) After(err error) time.Duration {
	if err == nil {
		return p.pauses.After(nil)
	}
	switch pgerr.ClassOf(err) {
	case pgerr.GuardFailed, pgerr.Race, pgerr.Busy:
		return run.Jitter(2 * time.Millisecond)
	}
	return p.pauses.After(err)
}
