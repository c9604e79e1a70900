package run_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

var errAway = errors.New("the database is away")

// A success ends the row of failures: the pause after the next failure is as short as the first one.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	p := run.Pauses{First: 20 * time.Millisecond, Most: 5 * time.Second}
	for round := range 3 {
		if first := p.After(errAway); first < 10*time.Millisecond || first > 30*time.Millisecond {
			t.Errorf("round %d: the first pause is %v, want 10 to 30 ms", round, first)
		}
		last := time.Duration(0)
		for range 30 {
			last = p.After(errAway)
		}
		if last < 2*time.Second || last > 8*time.Second {
			t.Errorf("round %d: the pause after 31 failures is %v, want some 5 s", round, last)
		}
		if pause := p.After(nil); pause != 0 {
			t.Errorf("round %d: the pause after a success is %v", round, pause)
		}
	}
}

// A subscription that ends is started again after a long pause if it always ends soon, and after a short one if it has
// run for more than a minute.
func TestWhatHasRunLongIsStartedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := run.Pauses{First: 100 * time.Millisecond, Most: 10 * time.Second}
		for _, c := range []struct{ ran, least, most time.Duration }{
			{time.Minute + 1, 50 * time.Millisecond, 150 * time.Millisecond},
			{time.Minute, 5 * time.Second, 15 * time.Second},
		} {
			for range 30 {
				p.AfterRun(time.Now())
			}
			begun := time.Now()
			_ = run.Sleep(t.Context(), c.ran)
			if pause := p.AfterRun(begun); pause < c.least || pause > c.most {
				t.Errorf("after a run of %v the pause is %v, want %v to %v", c.ran, pause, c.least, c.most)
			}
		}
	})
}

// Connections that cannot be opened are tried seldom, and a connection that was opened and breaks is reopened soon.
func TestWhatBreaksIsOpenedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const away = 30
		ctx, cancel := context.WithCancel(t.Context())
		var opened []time.Time
		p := run.Pauses{First: 100 * time.Millisecond, Most: 10 * time.Second}
		p.Reopen(ctx, func(context.Context) error {
			if opened = append(opened, time.Now()); len(opened)%away == 0 {
				return nil
			}
			return errAway
		}, func(context.Context) error {
			if len(opened) == 2*away {
				cancel()
			}
			return errAway
		}, func(err error) {
			if !errors.Is(err, errAway) {
				t.Errorf("%v was reported, want %v", err, errAway)
			}
		})
		for at, within := range map[int]time.Duration{1: 150 * time.Millisecond, away: 150 * time.Millisecond,
			away + 1: 150 * time.Millisecond, away - 1: 15 * time.Second} {
			pause := opened[at].Sub(opened[at-1])
			if pause > within || at == away-1 && pause < 5*time.Second {
				t.Errorf("attempt %d came %v after the one before, want at most %v", at, pause, within)
			}
		}
	})
}
