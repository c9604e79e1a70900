package edda

import (
	"context"
	"errors"
	"sync"
)

// life is what Host.Run has come to. The zero life is that of a Host that has not run.
type life struct {
	mu      sync.Mutex
	state   State        // guarded by mu; "" is Waiting
	failed  bool         // Check or a runner has; guarded by mu
	runners map[int]ends // of those that were started; guarded by mu
}

// ends says whether a runner has ended, and how.
type ends struct {
	ended bool
	err   error
}

func (l *life) turn(to State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == Stopping && l.state != Running {
		return // it has ended meanwhile
	}
	l.state = to
	if to == Checking {
		l.failed, l.runners = false, map[int]ends{}
	}
}

// fail notes that Check has failed.
func (l *life) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
}

// note runs a runner and keeps how it ended.
func (l *life) note(i int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		l.set(i, ends{})
		err := run(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it was told to end, which is no failure
			l.set(i, ends{ended: true})
		} else {
			l.set(i, ends{true, err})
		}
		return err
	}
}

func (l *life) set(i int, e ends) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runners[i] = e
	if e.err != nil && l.state == Running {
		l.state = Stopping // so are the others told to
	}
}

func (l *life) now() Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.state
	if state == "" {
		state = Waiting
	}
	return Health{State: state, Live: state != Ended && !l.failed}
}

func (l *life) of(i int, name string) RunnerHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, begun := l.runners[i]
	switch {
	case !begun:
		return RunnerHealth{Name: name, State: Waiting}
	case !e.ended:
		return RunnerHealth{Name: name, State: Running}
	}
	return RunnerHealth{Name: name, State: Ended, Err: e.err}
}
