package run_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// A Run waits for a function of the user for Drain and Grace, and for the work after that function until it has
// ended.
func TestARunEndsWithoutAFunctionThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	const drain = 30 * time.Second
	for _, c := range []struct {
		name        string
		calls, work time.Duration // how long the function, and all of the work, run after the end of the context
		took        time.Duration
		left        bool
	}{
		{"it returns at once", 0, 0, 0, false},
		{"it returns in time", drain, drain + time.Second, drain + time.Second, false},
		{"it never returns", time.Hour, time.Hour, drain + run.Grace, true},
		{"a commit follows", drain, drain + 20*time.Second, drain + 20*time.Second, false},
		{"a hook never returns", drain, time.Hour, drain + run.Grace + 30*time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			var calls run.Calls
			left := false
			ends := run.Ends{Name: "orders", Drain: drain, Log: slog.New(slog.NewTextHandler(&log, nil)), Calls: &calls,
				Leave: func() { left = true }}
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan struct{})
			leave := calls.Enter("order.place", [16]byte{15: 7}, time.Now())
			time.AfterFunc(time.Minute, stop)
			begun := time.Now()
			err := ends.Run(ctx, func(ctx context.Context) error {
				defer close(over)
				<-ctx.Done()
				_ = run.Sleep(t.Context(), c.calls)
				leave()
				return run.Sleep(t.Context(), c.work-c.calls)
			})
			took := time.Since(begun) - time.Minute
			if took < c.took || took > c.took+time.Second || left != c.left || errors.Is(err, run.ErrDrain) != c.left {
				t.Errorf("%s: after %v: %v, left: %v", c.name, took, err, left)
			}
			const named = "order.place 00000000-0000-0000-0000-000000000007 for 1m"
			if c.calls == time.Hour && (!strings.Contains(err.Error(), named) ||
				strings.Count(log.String(), named) != 2 ||
				!strings.Contains(log.String(), "until=2000-01-01T00:01:32")) {
				t.Errorf("%s: %v, and the log has\n%s", c.name, err, &log)
			}
			<-over
		})
	}
}

// If a call ends its goroutine, or does not return, Each continues with the calls behind it. Each call runs once.
func TestEachGoesOnWhereAGoroutineEnds(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 7} {
		for _, bad := range [][]int{nil, {0}, {n - 1}, {0, 1, 2}, {3}} {
			for _, want := range []error{run.ErrExited, run.ErrLeft} {
				synctest.Test(t, func(t *testing.T) {
					var called, failed, all []int
					back, late := make(chan struct{}), 0
					err := watched(t, t.Output(), func(calls *run.Calls) error {
						calls.Each(0, n, func(h *run.Hand, at int) {
							called = append(called, at)
							h.Enter("order.place", [16]byte{}, time.Now())
							switch {
							case !slices.Contains(bad, at):
							case want == run.ErrExited:
								runtime.Goexit()
							default:
								<-back
							}
							h.Return()
							if slices.Contains(bad, at) {
								late++
							}
						}, func(at int, err error) {
							if failed = append(failed, at); !errors.Is(err, want) {
								t.Errorf("%d failed with %v, want %v", at, err, want)
							}
						})
						return nil
					})
					close(back)
					synctest.Wait()
					for at := range n {
						if slices.Contains(bad, at) {
							all = append(all, at)
						}
					}
					if err != nil || len(called) != n || !slices.IsSorted(called) || !slices.Equal(failed, all) ||
						late > 0 {
						t.Errorf("of %d: %v, called %v, failed %v, want %v; %d went on", n, err, called, failed,
							all, late)
					}
				})
			}
		}
	}
}

// watched runs work, whose functions may run for ten seconds.
func watched(t *testing.T, log io.Writer, work func(calls *run.Calls) error) error {
	calls := &run.Calls{}
	ends := run.Ends{Name: "orders", Drain: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)), Calls: calls,
		Within: 10 * time.Second}
	return ends.Run(t.Context(), func(context.Context) error { return work(calls) })
}

// A function that does not return is left after its time and two checks; if the process stalled, it is not. At most a
// hundred are left at the same time, and the log reports the limit once.
func TestFunctionsThatDoNotReturnAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		back := make(chan struct{})
		err := watched(t, &log, func(calls *run.Calls) error {
			frozen := time.Now().Add(-time.Hour)
			after := func(d time.Duration) <-chan struct{} {
				c := make(chan struct{})
				time.AfterFunc(d, func() { close(c) })
				return c
			}
			call := func(since time.Time, until <-chan struct{}) error {
				return calls.Do(func(h *run.Hand) {
					h.Enter("order.place", [16]byte{}, since)
					<-until
					h.Return()
				})
			}
			if err := call(frozen, after(1900*time.Millisecond)); err != nil {
				t.Errorf("of a process that stood still: %v", err)
			}
			begun := time.Now()
			if err := call(begun, back); !errors.Is(err, run.ErrLeft) {
				t.Errorf("%v", err)
			}
			if took := time.Since(begun); took < 11*time.Second || took > 13*time.Second {
				t.Errorf("it was left after %v", took)
			}
			if names := calls.Busy(); len(names) > 0 {
				t.Errorf("a Run would wait for %v", names)
			}
			ended := make(chan error, 110)
			for range cap(ended) {
				go func() { ended <- call(time.Now(), back) }()
			}
			_ = run.Sleep(t.Context(), time.Minute+500*time.Millisecond) // between two checks
			if left := len(ended); left != 99 {
				t.Errorf("%d more were left, want 99", left)
			}
			close(back)
			synctest.Wait()
			for range cap(ended) {
				<-ended
			}
			if err := call(time.Now(), after(time.Minute)); !errors.Is(err, run.ErrLeft) {
				t.Errorf("when all have ended: %v", err)
			}
			return nil
		})
		if err != nil || strings.Count(log.String(), "a handler does not return, and its worker is replaced") != 101 ||
			strings.Count(log.String(), "too many handlers do not return") != 1 {
			t.Errorf("%v, and the log has\n%s", err, &log)
		}
		_ = run.Sleep(t.Context(), time.Minute)
	})
}
