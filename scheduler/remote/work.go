package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// Reporter takes reports on runs. A *Client is one.
type Reporter interface {
	Beat(ctx context.Context, r Run) error // ErrOver says that the work may stop
	End(ctx context.Context, r Run, failure error) error
}

// Logged is a Reporter with a logger, which Work uses in place of slog.Default(). A *Client is one.
type Logged interface {
	Reporter
	Log() *slog.Logger
}

const (
	lastTry   = 5 * time.Second // for the report of work that was done when its context ended
	leastBeat = 5 * time.Second // for a sign of life, and the longest that work waits for the first
	beatEnds  = time.Second     // for the sign of life that is under way when the work is reported
)

// Work gives a sign of life, calls work, gives another sign of life every so often meanwhile, and then reports how work
// ended. If the first sign of life says that the attempt is over, work is not called, and Work returns ErrOver. A first
// sign that fails in any other way, or takes five seconds, keeps work from nothing.
//
// The context of work ends with ctx, and with the cause ErrOver when a sign of life says that the attempt is over. Work
// returns nil when the end is reported, whether work failed or not: the scheduler tries the run again. If ctx ends,
// a failure is not reported, and the run is lost in time; for work that has returned nil Work tries to report for
// another five seconds.
//
// Work logs the first of a series of signs of life that fail. It does not wait for one that hangs, but gives no other
// one until it returns. A Reporter that ignores its context holds up the report of the end for as long as it takes.
func Work(ctx context.Context, by Reporter, r Run, every time.Duration, work func(ctx context.Context) error) error {
	if every <= 0 {
		return fmt.Errorf("work for run %s: a sign of life every %v: want more than 0", r.ID, every)
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := beginSigns(life, by, r, every, func() { end(ErrOver) })
	defer func() {
		end(nil)
		within(beatEnds, s.ended)
	}()
	within(leastBeat, s.first)
	if cause := context.Cause(life); cause != nil {
		return fmt.Errorf("work for run %s: %w", r.ID, cause)
	}
	return reportEnd(ctx, by, r, called(life, work))
}

// reportEnd reports how the work ended.
func reportEnd(ctx context.Context, by Reporter, r Run, failure error) error {
	if ctx.Err() == nil {
		if err := by.End(ctx, r, failure); err == nil || failure != nil || ctx.Err() == nil {
			return err
		}
	}
	if failure != nil {
		return fmt.Errorf("work for run %s: %w", r.ID, context.Cause(ctx))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	return by.End(last, r, nil)
}

// called returns a panic as an error, so that it is reported.
func called(ctx context.Context, work func(ctx context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return work(ctx)
}

// signs gives signs of life until its context ends.
type signs struct {
	by           Reporter
	run          Run
	over         func()        // called when the attempt is over
	first, ended chan struct{} // closed after the first sign, and after the last
	failing      bool          // whether the last sign failed
}

func beginSigns(ctx context.Context, by Reporter, r Run, every time.Duration, over func()) *signs {
	s := &signs{by: by, run: r, over: over, first: make(chan struct{}), ended: make(chan struct{})}
	all := run.NewGroup(ctx) // nobody waits for it: a sign that hangs would keep the caller
	all.Go(func(ctx context.Context) error {
		defer close(s.ended)
		s.give(ctx, every)
		close(s.first)
		for run.Sleep(ctx, every) == nil {
			s.give(ctx, every)
		}
		return nil
	})
	return s
}

// give gives one sign of life.
func (s *signs) give(ctx context.Context, every time.Duration) {
	one, cancel := context.WithTimeout(ctx, max(every, leastBeat))
	defer cancel()
	err := s.by.Beat(one, s.run)
	switch {
	case errors.Is(err, ErrOver):
		s.over()
	case err != nil && ctx.Err() == nil && !s.failing:
		logOf(s.by).Warn("edda: a sign of life of a run was not accepted", "run", s.run.ID, "attempt", s.run.Attempt,
			"error", err)
	}
	s.failing = err != nil
}

func logOf(by Reporter) *slog.Logger {
	if l, ok := by.(Logged); ok {
		return l.Log()
	}
	return slog.Default()
}

// within waits until done is closed, for some time.
func within(some time.Duration, done <-chan struct{}) {
	t := time.NewTimer(some)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
