package run_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// A Run waits for a function of the user for Drain and Grace, and for what follows that function until it is over.
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
			calls.Enter(t, "order.place", [16]byte{15: 7}, time.Now())
			time.AfterFunc(time.Minute, stop)
			begun := time.Now()
			err := ends.Run(ctx, func(ctx context.Context) error {
				defer close(over)
				<-ctx.Done()
				_ = run.Sleep(t.Context(), c.calls)
				calls.Leave(t)
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
