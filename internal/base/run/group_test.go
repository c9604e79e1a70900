package run_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

var errBroken, errLater = errors.New("broken"), errors.New("later")

// after returns a member that works for d, and then ends with err, unless its context ends before.
func after(d time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if ended := run.Sleep(ctx, d); ended != nil {
			return ended
		}
		return err
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		members []func(context.Context) error
		want    error
		took    time.Duration
	}{
		{"nobody", nil, nil, 0},
		{"all end well", []func(context.Context) error{after(time.Second, nil), after(time.Minute, nil)}, nil,
			time.Minute},
		{"one fails and ends the others", []func(context.Context) error{after(time.Second, errBroken),
			after(time.Hour, nil)}, errBroken, time.Second},
		{"the first failure counts", []func(context.Context) error{after(2*time.Second, errLater),
			after(time.Second, errBroken)}, errBroken, time.Second},
		{"a failure after the first is not it", []func(context.Context) error{
			after(time.Second, errBroken),
			func(ctx context.Context) error { <-ctx.Done(); return errLater },
		}, errBroken, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				g := run.NewGroup(t.Context())
				for _, m := range c.members {
					g.Go(m)
				}
				if err := g.Wait(); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("Wait returned %v, want %v", err, c.want)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// Members receive the cause of the end: they can distinguish a failed member from a shutdown.
func TestGroupTellsTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := run.NewGroup(t.Context())
		var cause error
		g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		g.Go(after(time.Second, errBroken))
		if err := g.Wait(); !errors.Is(err, errBroken) || !errors.Is(cause, errBroken) {
			t.Errorf("Wait returned %v, and the cause was %v", err, cause)
		}
	})
}

// An end from outside is no failure, whichever error of the context a member returns; a failure during the shutdown
// is one.
func TestGroupEndsFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returns func(context.Context) error
		want    error
	}{
		"the cause":          {context.Cause, nil},
		"the error":          {context.Context.Err, nil},
		"nothing":            {func(context.Context) error { return nil }, nil},
		"a failure":          {func(context.Context) error { return errBroken }, errBroken},
		"a failure and more": {func(context.Context) error { return errors.Join(errBroken, errLater) }, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ends := map[string]func(*run.Group, context.CancelCauseFunc){
					"stop":   func(g *run.Group, _ context.CancelCauseFunc) { g.Stop() },
					"parent": func(_ *run.Group, cancel context.CancelCauseFunc) { cancel(errors.New("deploy")) },
				}
				for how, end := range ends {
					ctx, cancel := context.WithCancelCause(t.Context())
					g := run.NewGroup(ctx)
					g.Go(func(ctx context.Context) error { <-ctx.Done(); return c.returns(ctx) })
					synctest.Wait()
					end(g, cancel)
					if err := g.Wait(); !errors.Is(err, c.want) || c.want == nil && err != nil {
						t.Errorf("ended by %s: Wait returned %v, want %v", how, err, c.want)
					}
					cancel(nil)
				}
			})
		})
	}
}

// A member may start a further member.
func TestGroupGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := run.NewGroup(t.Context())
		g.Go(func(context.Context) error {
			g.Go(after(time.Minute, errLater))
			return nil
		})
		if err := g.Wait(); !errors.Is(err, errLater) {
			t.Errorf("Wait returned %v, want the error of the second generation", err)
		}
	})
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := run.Sleep(t.Context(), time.Hour); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("slept %v, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errBroken) })
		begin = time.Now()
		if err := run.Sleep(ctx, time.Hour); !errors.Is(err, errBroken) || time.Since(begin) != time.Minute {
			t.Errorf("slept %v, %v, want a minute and the cause", time.Since(begin), err)
		}
	})
}

func TestJitterStaysWithinAQuarter(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, 1, 3, time.Second, time.Hour} {
		low, high := d, d
		for range 2000 {
			j := run.Jitter(d)
			low, high = min(low, j), max(high, j)
		}
		if low < d-d/4 || high > d+d/4+1 {
			t.Errorf("Jitter(%v) gave %v to %v", d, low, high)
		}
		if d >= time.Second && high-low < d/3 {
			t.Errorf("Jitter(%v) hardly spreads: %v to %v", d, low, high)
		}
	}
}

func TestDetachedOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		done := make(chan error)
		run.Detached(ctx, func(ctx context.Context) {
			err := run.Sleep(ctx, time.Minute)
			if ctx.Value(key{}) != "value" {
				err = errBroken
			}
			done <- err
		})
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the courtesy ended with %v", err)
		}
	})
}
