package wake_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/wake"
)

// bubble runs test with an Alarm that ticks, on a virtual clock.
func bubble(t *testing.T, poll time.Duration, test func(ctx context.Context, a *wake.Alarm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := wake.NewAlarm(poll)
		ended := make(chan error, 1)
		go func() { ended <- a.Tick(ctx, a.Wake) }()
		test(ctx, a)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// waited returns how long a loop waits until it is woken.
func waited(ctx context.Context, a *wake.Alarm) time.Duration {
	begin := time.Now()
	a.Await(ctx)
	return time.Since(begin)
}

func TestAlarmPolls(t *testing.T) {
	t.Parallel()
	bubble(t, time.Second, func(ctx context.Context, a *wake.Alarm) {
		if d := waited(ctx, a); d != 0 {
			t.Errorf("the first look came after %v, want at once", d)
		}
		for range 5 {
			if d := waited(ctx, a); d < 700*time.Millisecond || d > 1300*time.Millisecond {
				t.Errorf("polled after %v, want a second, give or take a quarter", d)
			}
		}
	})
}

// A wake-up is for one loop that continues: an earlier time counts, and a wake-up that meets a loop which ends is
// kept.
func TestAlarmWakesAtAKnownTime(t *testing.T) {
	t.Parallel()
	bubble(t, time.Minute, func(ctx context.Context, a *wake.Alarm) {
		a.Await(ctx)
		synctest.Wait()
		a.WakeAt(time.Now().Add(3 * time.Second))
		a.WakeAt(time.Now().Add(5 * time.Second))
		if d := waited(ctx, a); d != 3*time.Second {
			t.Errorf("woken after %v, want 3s", d)
		}
	})
}

// A loop may set a time before Tick runs for the first time, and before it waits again after a poll.
func TestAlarmKeepsATimeThatComesBeforeTickWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := wake.NewAlarm(time.Hour)
		a.WakeAt(time.Now().Add(3 * time.Second))
		ended, polled := make(chan error, 1), make(chan time.Time)
		go func() {
			ended <- a.Tick(ctx, func() (idle bool) {
				a.WakeAt(time.Now().Add(5 * time.Second))
				polled <- time.Now()
				return false
			})
		}()
		begin := time.Now()
		for _, want := range []time.Duration{3 * time.Second, 8 * time.Second} {
			if d := (<-polled).Sub(begin); d != want {
				t.Errorf("woken after %v, want %v", d, want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAlarmKeepsAWakeUp(t *testing.T) {
	t.Parallel()
	bubble(t, time.Hour, func(ctx context.Context, a *wake.Alarm) {
		a.Await(ctx)
		if a.Wake() {
			t.Error("an idle loop was reported, and there is none")
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if a.Await(ended) {
			t.Error("a loop that has ended was woken")
		}
		if d := waited(ctx, a); d != 0 {
			t.Errorf("woken after %v, want at once", d)
		}
		waits := make(chan bool)
		go func() { waits <- a.Await(ctx) }()
		synctest.Wait()
		if !a.Idle() || !a.Wake() || !<-waits {
			t.Error("the loop that waits was not woken")
		}
	})
}
