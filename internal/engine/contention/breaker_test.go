package contention

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// road is a breaker with workers, on a virtual clock. Every batch has one message, and takes a millisecond.
type road struct {
	breaker *Breaker
	broken  atomic.Bool // every message fails
	batches atomic.Int64
	at      atomic.Int64 // workers at work
	most    atomic.Int64
	slowed  atomic.Int64
}

func drive(t *testing.T, failures int, pause time.Duration, workers int, test func(ctx context.Context, r *road)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &road{breaker: NewBreaker(failures, pause)}
		group := run.NewGroup(ctx)
		for range workers {
			group.Go(r.work)
		}
		test(ctx, r)
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func (r *road) work(ctx context.Context) error {
	for ctx.Err() == nil {
		tries, ok := r.breaker.Admit(ctx)
		if !ok {
			return nil
		}
		broken := r.batch(ctx)
		if tries {
			r.breaker.Release(ctx, broken)
		}
	}
	return nil
}

func (r *road) batch(ctx context.Context) (broken bool) {
	at := r.at.Add(1)
	for most := r.most.Load(); at > most && !r.most.CompareAndSwap(most, at); most = r.most.Load() {
	}
	broken = r.broken.Load()
	_ = run.Sleep(ctx, time.Millisecond)
	r.at.Add(-1)
	r.batches.Add(1)
	handled, failed := 1, 0
	if broken {
		handled, failed = 0, 1
	}
	if c, _, _ := r.breaker.Note(handled, failed); c == Slowed {
		r.slowed.Add(1)
	}
	return broken
}

// passes returns how many batches there are in d, and how many workers were busy at most.
func (r *road) passes(ctx context.Context, d time.Duration) (batches, most int64) {
	synctest.Wait()
	before := r.batches.Load()
	r.most.Store(0)
	_ = run.Sleep(ctx, d)
	return r.batches.Load() - before, r.most.Load()
}

func TestAnEndpointWithoutSuccessTriesOneAtATime(t *testing.T) {
	drive(t, 100, time.Second, 8, func(ctx context.Context, r *road) {
		if n, most := r.passes(ctx, time.Second); n < 7900 || most != 8 {
			t.Errorf("healthy: %d batches by up to %d workers, want about 8000 by 8", n, most)
		}
		r.broken.Store(true)
		if n, _ := r.passes(ctx, 950*time.Millisecond); n < 7000 {
			t.Errorf("it slowed down before the failures had lasted for BreakerPause: %d batches", n)
		}
		_, _ = r.passes(ctx, 100*time.Millisecond)
		if n, most := r.passes(ctx, 10*time.Second); n < 9 || n > 11 || most != 1 {
			t.Errorf("broken: %d batches by up to %d workers in 10 s, want about 10 by 1", n, most)
		}
		r.broken.Store(false)
		_, _ = r.passes(ctx, 1010*time.Millisecond) // the next try
		if n, most := r.passes(ctx, time.Second); n < 7900 || most != 8 {
			t.Errorf("after one success: %d batches by up to %d workers, want about 8000 by 8", n, most)
		}
		if n := r.slowed.Load(); n != 1 {
			t.Errorf("slowed down %d times, want once", n)
		}
	})
}

// Failures among successes do not open the breaker, however many: a batch with a handled message has succeeded.
func TestFailuresWithSuccessBetweenSlowNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(3, time.Second)
		for range 1000 {
			for _, c := range [][2]int{{0, 2}, {1, 500}, {0, 1000}, {1, 0}} {
				if change, _, _ := b.Note(c[0], c[1]); change != Same {
					t.Fatal("it changed its pace")
				}
			}
			_ = run.Sleep(t.Context(), time.Minute)
		}
	})
}

// A burst of messages that all fail is over before BreakerPause is.
func TestAShortBurstOfFailuresSlowsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(100, time.Second)
		for range 99 {
			if change, _, _ := b.Note(0, 1000); change != Same {
				t.Fatal("slowed down within the burst")
			}
			_ = run.Sleep(t.Context(), 10*time.Millisecond)
		}
		if tries, ok := b.Admit(t.Context()); tries || !ok {
			t.Error("workers do not pass freely")
		}
		if b.Note(1, 0); b.failed.Load() != 0 || b.Handled.Load() != 1 {
			t.Error("a success does not end the count")
		}
	})
}

// A worker that waits to try, or in the pause, ends with its context.
func TestABrakedWorkerGoesHomeAtOnce(t *testing.T) {
	drive(t, 1, 5*time.Second, 3, func(ctx context.Context, r *road) {
		r.broken.Store(true)
		_ = run.Sleep(ctx, 6*time.Second)
		if !r.breaker.Slow() {
			t.Fatal("not slow")
		}
	}) // drive waits for the workers; a bubble whose goroutines all block fails
}

func TestAlwaysOneTriesWhileSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(1, time.Second)
		b.Note(0, 1)
		_ = run.Sleep(t.Context(), time.Second)
		if c, n, _ := b.Note(0, 1); c != Slowed || n != 2 {
			t.Fatalf("change %v after %d failures, want slow after 2", c, n)
		}
		tries, ok := b.Admit(t.Context())
		if !tries || !ok {
			t.Fatal("nobody may try")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, ok := b.Admit(ctx); ok || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error("two try at a time")
		}
		if c, _, d := b.Note(1, 5); c != Recovered || d != time.Minute {
			t.Errorf("change %v after %v, want recovered after a minute", c, d)
		}
		b.Release(t.Context(), true)
		if tries, ok := b.Admit(t.Context()); tries || !ok {
			t.Error("workers do not pass freely after a success")
		}
	})
}
