package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

func TestWait(t *testing.T) {
	t.Parallel()
	type act func(n run.Nudge, cancel context.CancelFunc)
	send := func(n run.Nudge, _ context.CancelFunc) { n.Send() }
	end := func(_ run.Nudge, cancel context.CancelFunc) { cancel() }
	for _, c := range []struct {
		name   string
		before act // before the Wait of an hour
		after  act // a minute after its begin
		want   run.Woken
		took   time.Duration
	}{
		{name: "nothing happens", want: run.TimedOut, took: time.Hour},
		{name: "a nudge", after: send, want: run.Nudged, took: time.Minute},
		{name: "a nudge before", before: send, want: run.Nudged},
		{name: "a nudge that was dropped", before: func(n run.Nudge, _ context.CancelFunc) { n.Send(); n.Drop() },
			want: run.TimedOut, took: time.Hour},
		{name: "a closed signal", after: func(n run.Nudge, _ context.CancelFunc) { close(n) },
			want: run.Nudged, took: time.Minute},
		{name: "the end", after: end, want: run.Ended, took: time.Minute},
		{name: "the end and a nudge", before: func(n run.Nudge, cancel context.CancelFunc) { cancel(); n.Send() },
			want: run.Ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n, begin := run.NewNudge(), time.Now()
				if c.before != nil {
					c.before(n, cancel)
				}
				if c.after != nil {
					time.AfterFunc(time.Minute, func() { c.after(n, cancel) })
				}
				if woken := run.Wait(ctx, time.Hour, n); woken != c.want || time.Since(begin) != c.took {
					t.Errorf("Wait returned %v after %v, want %v after %v", woken, time.Since(begin), c.want, c.took)
				}
			})
		})
	}
}

// Several nudges before a Wait count as one.
func TestNudgesCoalesce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := run.NewNudge()
		n.Drop() // nothing was kept, and Drop does not wait
		n.Send()
		n.Send()
		if woken := run.Wait(t.Context(), time.Hour, n); woken != run.Nudged {
			t.Errorf("the first Wait returned %v", woken)
		}
		if woken := run.Wait(t.Context(), time.Hour, n); woken != run.TimedOut {
			t.Errorf("the second Wait returned %v", woken)
		}
	})
}
