package batch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// bubble runs test with a pump and the pump's ticker, on a virtual clock.
func bubble(t *testing.T, poll time.Duration, batchMax int, test func(ctx context.Context, p *pump)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPump(wake.NewAlarm(poll), batchMax)
		ended := make(chan error, 1)
		go func() { ended <- p.Tick(ctx, p.Wake) }()
		test(ctx, p)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// waited returns how long an idle worker waits until it is woken.
func waited(ctx context.Context, p *pump) time.Duration {
	begin := time.Now()
	p.Await(ctx)
	return time.Since(begin)
}

func TestAnIdleWorkerPolls(t *testing.T) {
	bubble(t, time.Second, 500, func(ctx context.Context, p *pump) {
		if d := waited(ctx, p); d != 0 {
			t.Errorf("the first look came after %v, want at once", d)
		}
		for range 5 {
			if d := waited(ctx, p); d < 700*time.Millisecond || d > 1300*time.Millisecond {
				t.Errorf("polled after %v, want a second, give or take a quarter", d)
			}
		}
	})
}

func TestAWorkerWakesWhenTheNextMessageIsDue(t *testing.T) {
	bubble(t, time.Minute, 500, func(ctx context.Context, p *pump) {
		p.Await(ctx)
		synctest.Wait()
		p.WakeAt(time.Now().Add(3 * time.Second))
		p.WakeAt(time.Now().Add(5 * time.Second)) // a later time does not replace an earlier one
		if d := waited(ctx, p); d != 3*time.Second {
			t.Errorf("woken after %v, want 3s", d)
		}
	})
}

// A wake-up that meets only busy workers is not lost: the next worker that becomes idle finds it.
func TestAWakeUpIsKeptForABusyWorker(t *testing.T) {
	bubble(t, time.Hour, 500, func(ctx context.Context, p *pump) {
		p.Await(ctx)
		p.begin(queue.Position{})
		if p.Wake() {
			t.Error("an idle worker was reported, and there is none")
		}
		p.finish(report{})
		if d := waited(ctx, p); d != 0 {
			t.Errorf("woken after %v, want at once", d)
		}
	})
}

func TestAFullTakeCallsForHelpAndAUselessHelperEndsThat(t *testing.T) {
	bubble(t, time.Hour, 500, func(ctx context.Context, p *pump) {
		p.Await(ctx)
		woken := make(chan time.Time)
		helper := func() {
			p.Await(ctx)
			woken <- time.Now()
		}
		go helper()
		synctest.Wait()
		o := p.begin(queue.Position{})
		p.taken(o, o.limit, queue.Position{Due: time.Now()})
		<-woken // the helper came

		p.noHelpFor(50 * time.Millisecond)
		go helper()
		synctest.Wait()
		o = p.begin(queue.Position{})
		p.taken(o, o.limit, queue.Position{Due: time.Now()})
		synctest.Wait()
		select {
		case <-woken:
			t.Error("a helper was called right after one had been useless")
		default:
		}
		_ = run.Sleep(ctx, 51*time.Millisecond)
		o = p.begin(queue.Position{})
		p.taken(o, o.limit, queue.Position{Due: time.Now()})
		<-woken
	})
}

func TestOneHelperAtATimeLooksFurtherBehind(t *testing.T) {
	t.Parallel()
	p := newPump(wake.NewAlarm(time.Hour), 500)
	for round := range 2 {
		if first, second := p.noHelpFor(0), p.noHelpFor(0); !first || second {
			t.Errorf("round %d: of two helpers the first may look: %v, the second: %v", round, first, second)
		}
		p.backedOff()
	}
}

func TestTroubleHalvesTheBatchAndSuccessGrowsIt(t *testing.T) {
	bubble(t, time.Second, 100, func(_ context.Context, p *pump) {
		take := func() int {
			o := p.begin(queue.Position{})
			p.taken(o, o.limit, queue.Position{Due: time.Now()})
			return o.limit
		}
		take()
		p.finish(report{Report: outcome.Report{Handled: 64, Taken: 64}})
		if n := take(); n != 100 {
			t.Fatalf("after a full take the limit is %d, want BatchMax", n)
		}
		taken := 100
		for range 8 {
			p.finish(report{Report: outcome.Report{Taken: taken}, failed: true})
			taken = take()
		}
		if taken != 1 {
			t.Errorf("after 8 troubles the limit is %d, want 1", taken)
		}
		for range 60 {
			p.finish(report{Report: outcome.Report{Handled: taken, Taken: taken}})
			taken = take()
		}
		if taken != 100 {
			t.Errorf("after 60 successes the limit is %d, want 100 again", taken)
		}
	})
}

func TestALateBatchMakesTheNextOneSmaller(t *testing.T) {
	bubble(t, time.Second, 500, func(_ context.Context, p *pump) {
		p.taken(p.begin(queue.Position{}), 64, queue.Position{})
		p.finish(report{Report: outcome.Report{Taken: 64, Handled: 4}, late: true})
		if o := p.begin(queue.Position{}); o.limit != 8 {
			t.Errorf("limit %d after 4 of 64 were handled in the time there was, want 8", o.limit)
		}
	})
}

func TestTheCursorServesOnlyWhileOthersWork(t *testing.T) {
	bubble(t, time.Second, 500, func(_ context.Context, p *pump) {
		end := queue.Position{Due: time.Now(), ID: saga.ID{1}}
		first := p.begin(queue.Position{})
		p.taken(first, first.limit, end)
		if second := p.begin(queue.Position{}); second.after != end || !second.helper {
			t.Errorf("a second worker begins at %v, want behind the first", second.after)
		}
		p.finish(report{})
		p.finish(report{})
		if alone := p.begin(queue.Position{}); alone.after != (queue.Position{}) {
			t.Errorf("alone, a worker begins at %v, want at the head", alone.after)
		}
		p.finish(report{})
	})
}

// Of two workers one was always busy when the other began. As long as every take was full, each took behind the last
// one, and messages that were left at the head, or were committed there late, waited until the queue was empty.
func TestTheHeadIsLookedAtWhileOthersAlwaysWork(t *testing.T) {
	bubble(t, time.Second, 500, func(ctx context.Context, p *pump) {
		end := queue.Position{Due: time.Now(), ID: saga.ID{1}}
		first := p.begin(queue.Position{})
		p.taken(first, first.limit, end)
		heads, behind := 0, 0
		for begun := time.Now(); time.Since(begun) < time.Second; _ = run.Sleep(ctx, 10*time.Millisecond) {
			o := p.begin(queue.Position{}) // the batch before it has not ended
			p.taken(o, o.limit, end)
			p.finish(report{})
			if o.after == end {
				behind++
			} else {
				heads++
			}
		}
		p.finish(report{})
		if heads < 5 || heads > 10 {
			t.Errorf("in a second %d takes began at the head and %d behind it, want one at the head every %v", heads,
				behind, cursorFor)
		}
	})
}

func TestAParkedWorkerGoesOnWhenABatchEnds(t *testing.T) {
	bubble(t, time.Second, 500, func(ctx context.Context, p *pump) {
		p.begin(queue.Position{})
		parked := make(chan time.Duration)
		go func() {
			begin := time.Now()
			p.park(ctx)
			parked <- time.Since(begin)
		}()
		synctest.Wait()
		p.finish(report{Report: outcome.Report{Handled: 1, Taken: 1}})
		if d := <-parked; d != 0 {
			t.Errorf("it went on after %v, want when the batch ended", d)
		}
	})
}

// A caller that reports an endpoint as paused has waited for the takes in flight.
func TestAHaltedPumpBeginsNothingAndTellsWhenItIsQuiet(t *testing.T) {
	bubble(t, time.Second, 500, func(_ context.Context, p *pump) {
		if quiet := p.halt(true); quiet != nil {
			t.Error("nobody has begun, and there is somebody to wait for")
		}
		if o := p.begin(queue.Position{}); o.limit != 0 || p.busy != 0 {
			t.Fatalf("a batch began: %+v", o)
		}
		p.halt(false)
		first, second := p.begin(queue.Position{}), p.begin(queue.Position{})
		p.begin(queue.Position{})
		first.alone = true
		quiet := p.halt(true)
		p.taken(first, 1, queue.Position{})
		p.refused() // the third got no permit
		select {
		case <-quiet:
			t.Error("quiet while another is taking")
		default:
		}
		p.taken(second, 0, queue.Position{})
		select {
		case <-quiet:
		default:
			t.Error("all takes have ended, that of one suspect and the one without a permit too, and it is not quiet")
		}
	})
}

// A worker that waits checks again at the time that ready returns, and not only when a batch ends.
func TestWorkerThatWaitsLooksAgainInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPump(wake.NewAlarm(time.Second), 10)
		begun, looks := time.Now(), 0
		ready := p.untilEnded(t.Context(), 50*time.Millisecond, func() (bool, time.Duration) {
			looks++
			return looks == 3, 7 * time.Millisecond
		})
		if took := time.Since(begun); !ready || looks != 3 || took != 14*time.Millisecond {
			t.Errorf("ready %v after %d looks and %v", ready, looks, took)
		}
		if p.untilEnded(t.Context(), 50*time.Millisecond, func() (bool, time.Duration) { return false, time.Hour }) {
			t.Error("it is ready, and was not")
		}
		if took := time.Since(begun); took != 64*time.Millisecond {
			t.Errorf("it gave up after %v", took)
		}
	})
}
