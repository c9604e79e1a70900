package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Group runs members until one ends with an error or the context ends. The zero Group is not usable.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error // written once, before cancel; read after wg.Wait
}

// NewGroup returns a Group whose members receive a context that ends with ctx, or when a member fails.
func NewGroup(ctx context.Context) *Group {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{ctx: ctx, cancel: cancel}
}

// Go starts a member. If a member returns nil, the others continue. A member that returns the error of its context
// after that has ended has not failed.
func (g *Group) Go(member func(ctx context.Context) error) {
	g.wg.Go(func() {
		if err := member(g.ctx); err != nil && !g.endedBy(err) {
			g.once.Do(func() { g.err = err })
			g.cancel(err)
		}
	})
}

func (g *Group) endedBy(err error) bool {
	end := g.ctx.Err()
	return end != nil && (errors.Is(err, end) || errors.Is(err, context.Cause(g.ctx)))
}

// Stop ends the context of the members without an error.
func (g *Group) Stop() { g.cancel(context.Canceled) }

// Wait returns after all members have returned, with the error of the first that failed, or nil.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.cancel(context.Canceled)
	return g.err
}

// Jitter spreads d evenly over ± a quarter, so that processes started together do not poll together.
func Jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1)
}

// ErrExited is the failure of a function that ended its goroutine.
var ErrExited = errors.New("it ended its goroutine (runtime.Goexit, or FailNow of package testing)")

// Call runs f in a goroutine of its own, waits for its end, and reports whether f returned. It did not if a function
// of a user that it called ended the goroutine with runtime.Goexit, as t.FailNow of package testing does. A panic of
// f ends the process.
func Call(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

// Beside starts f in a goroutine that its caller may abandon: f calls a function that may never return.
func Beside(f func()) { go f() }

// Detached runs f in a goroutine of its own, with the caller's context values but not its cancellation. f must always
// end soon by itself. Use it for work that may be lost.
func Detached(ctx context.Context, f func(ctx context.Context)) {
	go f(context.WithoutCancel(ctx))
}
