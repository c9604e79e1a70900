package edda

import (
	"context"
	"errors"
	"sync"
)

// errRunning is the error of a second call of Run during the first.
var errRunning = errors.New("run host: it is running already: call Run once, or again when it has returned")

// life is the state of Host.Run. The zero life is a Host that has not run.
type life struct {
	mu      sync.Mutex
	running bool         // between begin and its end; guarded by mu
	state   State        // guarded by mu; "" is Waiting
	failed  bool         // Check or a runner has failed; guarded by mu
	runners map[int]ends // of the started runners; guarded by mu
}

// ends is whether a runner has ended, and its error.
type ends struct {
	ended bool
	err   error
}

// begin begins a Run. If a Run has not ended, begin returns an error and changes nothing.
func (l *life) begin() (ended func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		return nil, errRunning
	}
	l.running, l.state, l.failed, l.runners = true, Checking, false, map[int]ends{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running, l.state = false, Ended
	}, nil
}

func (l *life) turn(to State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == Stopping && l.state != Running {
		return // Run has ended, or a runner has failed
	}
	l.state = to
}

// fail records that Check has failed.
func (l *life) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
}

// note returns a function that runs a runner and records its end.
func (l *life) note(i int, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		l.set(i, ends{})
		err := run(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it ended because ctx did, which is no failure
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
		l.state = Stopping // the group now ends the other runners
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
