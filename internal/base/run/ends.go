package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Grace is how long a function of the user may take to return after its context has been cancelled.
const Grace = 2 * time.Second

const (
	sayAfter  = 500 * time.Millisecond // a Run that ends sooner does not log that it is ending
	lookEvery = 50 * time.Millisecond
	settling  = 30 * time.Second // the work after such a function, such as a commit, has time limits of its own
)

// Ends defines how a Run ends that calls functions of the user, which may never return.
type Ends struct {
	Name  string        // of the Run, in the log
	Drain time.Duration // how long the functions may continue after the end of the Run's context
	Log   *slog.Logger
	Calls *Calls
	// Within is how long a function may run before Calls.Do leaves it, see there; 0 means no limit.
	Within time.Duration
	Leave  func() // called when the Run returns before its work; may be nil
}

var errGone = errors.New("a function of the program has ended the goroutine of Run")

// Run calls work and returns its error. If a function of the user still runs Drain and Grace after the end of ctx,
// Run returns ErrDrain with the names of these calls, and work outlives it. The log names the calls that Run waits
// for.
func (e Ends) Run(ctx context.Context, work func(ctx context.Context) error) error {
	if e.Within > 0 {
		watch := NewGroup(context.WithoutCancel(ctx))
		watch.Go(e.watch)
		defer func() { watch.Stop(); _ = watch.Wait() }() // its member has no errors
	}
	ended := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { ended <- err }()
		err = work(ctx)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	until := time.Now().Add(e.Drain + Grace)
	if err, is := within(ended, sayAfter); is {
		return err
	}
	if busy := e.Calls.Busy(); len(busy) > 0 {
		e.Log.Info("edda: waiting for handlers before the end", "name", e.Name, "handlers", busy, "until", until.UTC())
	}
	if err, is := within(ended, time.Until(until)); is {
		return err
	}
	return e.leave(ended, until)
}

// leave waits for work as long as no function of the user runs: the work commits, and will end.
func (e Ends) leave(ended <-chan error, until time.Time) error {
	for {
		busy := e.Calls.Busy()
		if len(busy) == 0 && time.Since(until) > settling {
			busy = []string{"a hook of the program"}
		}
		if len(busy) > 0 {
			e.Log.Warn("edda: Run returns while handlers still run", "name", e.Name, "handlers", busy)
			if e.Leave != nil {
				e.Leave()
			}
			return fmt.Errorf("%w; still running, and not waited for: %s", ErrDrain, strings.Join(busy, ", "))
		}
		if err, is := within(ended, lookEvery); is {
			return err
		}
	}
}

func within(ended <-chan error, d time.Duration) (err error, is bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err, true
	case <-timer.C:
		return nil, false
	}
}

// Patience is how long a function of the user may run after the end of its context before Calls.Do leaves it.
const Patience = 5 * time.Second

const (
	watchEvery = time.Second
	mostLeft   = 100 // goroutines of one Run that have been left and are still running
)

// watch leaves functions of the user that do not return, until ctx ends.
func (e Ends) watch(ctx context.Context) error {
	for said := false; Sleep(ctx, watchEvery) == nil; {
		left, stuck := e.Calls.leaveLate(e.Within, watchEvery, mostLeft)
		for _, one := range left {
			e.Log.Warn("edda: a handler does not return, and its worker is replaced", "name", e.Name, "handler", one)
		}
		if len(stuck) > 0 && !said {
			e.Log.Error("edda: too many handlers do not return", "name", e.Name, "left", mostLeft, "handlers", stuck)
		}
		said = len(stuck) > 0
	}
	return nil
}
