package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// breaker slows an endpoint of this process down while nothing succeeds: one worker tries one message at a time, with a
// pause after each failure. The first message that is handled ends it, and all go on at once. The count is of batches:
// one in which a message was handled has succeeded, whatever else failed in it. Safe for concurrent use.
//
// While messages are handled it costs an atomic addition and two atomic loads for each batch.
type breaker struct {
	after int64         // failed attempts with no success between
	pause time.Duration // and no sooner than this after the first of them

	handled atomic.Int64 // messages, since Run began
	failed  atomic.Int64 // attempts, since a message was handled
	slow    atomic.Bool
	trying  chan struct{} // of capacity 1: held by the worker that tries

	mu    sync.Mutex
	first time.Time     // guarded by mu, as is what follows: when the first of failed was
	since time.Time     // when the slowness began
	over  chan struct{} // closed when it ends
}

func newBreaker(o EndpointOptions) *breaker {
	return &breaker{after: int64(o.BreakerFailures), pause: o.BreakerPause, trying: make(chan struct{}, 1)}
}

// admit waits until the caller may take. It reports whether it is the one that tries, which then calls release.
func (b *breaker) admit(ctx context.Context) (tries, ok bool) {
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

func (b *breaker) ended() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// release lets another one try. After a failure the pause comes first, unless something succeeds meanwhile.
func (b *breaker) release(ctx context.Context, failed bool) {
	defer func() { <-b.trying }()
	if !failed || !b.slow.Load() {
		return
	}
	run.Wait(ctx, b.pause, b.ended())
}

// change is what a batch did to the pace.
type change uint8

const (
	samePace change = iota
	slowedPace
	recoveredPace
)

// note counts what a committed batch did. It reports whether the pace has changed by it: how many attempts have failed
// in a row, or how long it was slow.
func (b *breaker) note(handled, failed int) (c change, failures int64, slowFor time.Duration) {
	switch {
	case handled > 0:
		b.handled.Add(int64(handled))
		if b.failed.Load() == 0 {
			return samePace, 0, 0
		}
		return b.succeed()
	case failed > 0:
		return b.fail(int64(failed))
	}
	return samePace, 0, 0
}

func (b *breaker) succeed() (change, int64, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed.Store(0)
	if !b.slow.Load() {
		return samePace, 0, 0
	}
	b.slow.Store(false)
	close(b.over)
	return recoveredPace, 0, time.Since(b.since)
}

func (b *breaker) fail(n int64) (change, int64, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	failures := b.failed.Add(n)
	if failures == n {
		b.first = now
	}
	if failures < b.after || now.Sub(b.first) < b.pause || b.slow.Load() {
		return samePace, 0, 0
	}
	b.since, b.over = now, make(chan struct{})
	b.slow.Store(true)
	return slowedPace, failures, 0
}

// pace counts a batch, and says when the endpoint slows down or recovers.
func (e *Endpoint) pace(r report) {
	switch c, failures, slowFor := e.breaker.note(r.done, r.failures); c {
	case slowedPace:
		e.bus.log.Warn("edda: endpoint slowed down", "endpoint", e.name, "failures", failures, "pause", e.breaker.pause,
			"error", r.failure)
		e.bus.emit(Slowed{Endpoint: e.name, Failures: int(failures), Err: r.failure})
	case recoveredPace:
		e.bus.log.Info("edda: endpoint recovered", "endpoint", e.name, "slow_for", slowFor)
		e.bus.emit(Recovered{Endpoint: e.name, SlowFor: slowFor})
	}
}
