package hooks

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

// Hooks are functions of the user's that see messages go out and transactions end. Each may be nil.
type Hooks struct {
	Outgoing func(ctx context.Context, i *saga.Info)
	Around   Around
}

// Around is called around one transaction, whose work is run.
type Around func(ctx context.Context, t *event.Transaction, run func(context.Context))

// Alone is a call of a in a goroutine of its own, which a function of the user's may end: work is called all the same.
func (a Around) Alone(ctx context.Context, t *event.Transaction, work func(context.Context)) {
	begun := false
	run.Call(func() { a(ctx, t, func(ctx context.Context) { begun = true; work(ctx) }) })
	if !begun {
		work(ctx)
	}
}

// Guard returns an Around that calls run exactly once, whatever f does. If f panics before it calls run, or does
// not call it, run is called without f. If f panics afterwards, what run did stands. A panic of f is logged, and one of
// run goes on.
func Guard(f Around, log *slog.Logger) Around {
	if f == nil {
		return nil
	}
	panics := &Panics{}
	return func(ctx context.Context, t *event.Transaction, run func(context.Context)) {
		g := guarded{run: run}
		g.call(ctx, t, f, func(v any) {
			panics.Log(v, log, "edda: Options.Around panicked", "endpoint", t.Endpoint)
		})
		switch {
		case !g.begun:
			run(ctx)
		case g.panicked != nil: // f has recovered it
			panic(g.panicked)
		}
	}
}

// guarded is one call of an Around. It belongs to one goroutine.
type guarded struct {
	run      func(context.Context)
	begun    bool
	panicked any // by run
}

func (g *guarded) call(ctx context.Context, t *event.Transaction, f Around, log func(v any)) {
	defer func() {
		if v := recover(); v != nil && g.panicked == nil { // else the caller panics again
			log(v)
		}
	}()
	f(ctx, t, g.once)
}

// once is run as f sees it. A second call does nothing.
func (g *guarded) once(ctx context.Context) {
	if g.begun {
		return
	}
	g.begun = true
	defer func() {
		if g.panicked = recover(); g.panicked != nil {
			panic(g.panicked)
		}
	}()
	g.run(ctx)
}

// Panics counts the panics of a function that is called very often, and logs them at most once in panicWarns.
type Panics struct {
	mu    sync.Mutex
	count int       // since the last warning; guarded by mu
	told  time.Time // guarded by mu
}

const panicWarns = time.Minute // between two warnings of panics

// Log logs that the function has panicked with v. The function that recovered v calls it.
func (p *Panics) Log(v any, log *slog.Logger, text string, args ...any) {
	p.mu.Lock()
	p.count++
	count, say := p.count, time.Since(p.told) >= panicWarns
	if say {
		p.count, p.told = 0, time.Now()
	}
	p.mu.Unlock()
	if say {
		log.Warn(text, append(args, "panics", count, "panic", beginning(fmt.Sprint(v), mostShownPanic),
			"stack", beginning(string(debug.Stack()), mostShownStack))...)
	}
}

const (
	mostShownPanic = 500
	mostShownStack = 8 << 10
)

// beginning is the beginning of a text that may be long.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
