package lab

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// Trial breaks something once, in a lab of its own: Prepare, then Break while workers run, then Judge when they have
// finished what they had in hand.
type Trial struct {
	Title   string // in the line of figures
	Server  pgdev.Options
	Prepare func(ctx context.Context, l *Lab) error // nil does nothing
	Places  int                                     // of workers; 0 is what the flags say
	DSN     func(place int) string                  // of the worker at a place; nil is the lab's own database
	Task    func(place int) any                     // of the worker at a place
	MayEnd  bool                                    // a worker may end by itself; when all have, Break ends
	Break   func(ctx context.Context, l *Lab) error
	Judge   func(ctx context.Context, l *Lab) error
}

// All gives the workers of all places the same task.
func All(task any) func(place int) any { return func(int) any { return task } }

// Try opens a lab, runs the trial and prints the verdict. A worker that ends by itself ends the trial, with an
// error.
func (s Settings) Try(ctx context.Context, t Trial) (err error) {
	l, err := Open(ctx, s, t.Server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if t.Prepare != nil {
		if err := t.Prepare(ctx, l); err != nil {
			return err
		}
	}
	l.Crew = newCrew(ctx, l, t)
	began := time.Now()
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		return l.Crew.Run(ctx)
	})
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		return t.Break(ctx, l)
	})
	if err := errors.Join(all.Wait(), ctx.Err()); err != nil {
		return err
	}
	l.Fact("seconds", int(time.Since(began).Seconds()))
	if err := t.Judge(ctx, l); err != nil {
		return err
	}
	return l.Conclude(ctx, t.Title)
}
