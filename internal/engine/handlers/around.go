package handlers

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/saga"
)

// Around calls a function of the user around each transaction. Safe for concurrent use.
type Around struct {
	f      aroundFunc
	log    *slog.Logger
	faults Faults
	away   atomic.Int32 // calls that have not returned in time
}

type aroundFunc = func(ctx context.Context, t *event.Transaction, run func(context.Context))

// NewAround returns an Around of f, or nil if f is nil.
func NewAround(f aroundFunc, log *slog.Logger) *Around {
	if f == nil {
		return nil
	}
	return &Around{f: f, log: log}
}

// Do runs work exactly once, whatever the function does: inside of it, in its goroutine, or without it, if the
// function has not called run when it returns, panics, ends its goroutine or runs out of Patience. A panic of the
// function is logged, and a panic of work ends the process. If work ends its goroutine, Do ends that of its caller.
//
// away reports that the function has not returned within Patience after work: it may still read the data of
// t.Messages.
func (a *Around) Do(ctx context.Context, t *event.Transaction, work func(context.Context)) (away bool) {
	if a.away.Load() > 0 {
		work(ctx)
		return false
	}
	seen := *t
	c := &around{of: a, t: t, seen: &seen, work: work, begun: make(chan struct{}), done: make(chan struct{}),
		left: make(chan struct{})}
	run.Beside(func() { c.call(ctx) })
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-c.begun:
	case <-c.left:
	case <-timer.C:
	}
	if c.begins() {
		work(ctx)
		c.ended = true
		close(c.done)
	}
	<-c.done
	timer.Reset(Patience)
	select {
	case <-c.left:
	case <-timer.C:
		if a.away.Add(1); c.over.CompareAndSwap(false, true) {
			a.faults.Log(ErrAway, a.log, "edda: Options.Around failed", "endpoint", t.Endpoint)
			away = true
		} else {
			a.away.Add(-1)
		}
	}
	switch {
	case c.panicked != nil: // the function has recovered it
		panic(c.panicked)
	case !c.ended:
		runtime.Goexit()
	}
	return away
}

// around is one call.
type around struct {
	of       *Around
	t, seen  *event.Transaction // seen is the copy that the function receives
	work     func(context.Context)
	started  atomic.Bool
	begun    chan struct{} // closed when work begins inside of the function
	done     chan struct{} // closed when work has ended
	left     chan struct{} // closed when the function has ended
	over     atomic.Bool   // the function has ended, or its caller has left
	inside   bool          // work has begun inside of the function
	ended    bool          // work has returned
	panicked any           // panic value of work
}

// begins reports whether work is to begin now: true once.
func (c *around) begins() bool { return c.started.CompareAndSwap(false, true) }

func (c *around) call(ctx context.Context) {
	err := run.ErrExited
	defer func() {
		if v := recover(); v != nil {
			if c.panicked != nil {
				panic(v)
			}
			err = &saga.PanicError{Value: v, Stack: debug.Stack()}
		}
		if err != nil && (!c.inside || c.ended) {
			c.of.faults.Log(err, c.of.log, "edda: Options.Around failed", "endpoint", c.t.Endpoint)
		}
		if !c.over.CompareAndSwap(false, true) {
			c.of.away.Add(-1)
		}
		close(c.left)
	}()
	c.of.f(ctx, c.seen, c.run)
	err = nil
}

// run is the function that the user's function calls. A second call does nothing.
func (c *around) run(ctx context.Context) {
	if !c.begins() {
		return
	}
	c.inside = true
	close(c.begun)
	defer func() {
		c.panicked = recover()
		close(c.done)
		if c.panicked != nil {
			panic(c.panicked)
		}
	}()
	c.work(ctx)
	*c.seen, c.ended = *c.t, true
}
