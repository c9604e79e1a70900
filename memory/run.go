package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/run"
)

type runner interface {
	Run(ctx context.Context) error
	begun() bool // guarded by the bus's mutex
}

// Run runs every endpoint, scheduler and singleton that was made on the bus before, until ctx ends and all have ended.
// It takes no message before all endpoints are known. The first error ends all of them, and is returned.
func (b *Bus) Run(ctx context.Context) error {
	group, _, err := b.start(ctx)
	if err != nil {
		return err
	}
	return group.Wait()
}

// Start is Run for tests. It returns when everything runs, so that Advance waits for it. stop ends everything, waits
// for the end and returns the first error. If a runner fails to begin, Start ends the others and returns the error.
func (b *Bus) Start(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	group, begun, err := b.start(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() error {
		cancel()
		return group.Wait()
	}
	for {
		b.mu.Lock()
		all, failed := begun()
		changed := b.changed
		b.mu.Unlock()
		switch {
		case failed:
			return nil, stop()
		case all:
			return stop, nil
		}
		if run.Wait(ctx, forEver, changed) == run.Ended {
			return nil, errors.Join(fmt.Errorf("start the memory bus: %w", context.Cause(ctx)), stop())
		}
	}
}

// start runs everything. begun reports whether all have begun, and whether one has ended with an error; its caller
// holds the mutex.
func (b *Bus) start(ctx context.Context) (group *run.Group, begun func() (all, failed bool), err error) {
	b.mu.Lock()
	runners := b.runners
	b.mu.Unlock()
	for _, r := range runners {
		if e, ok := r.(*Endpoint); ok {
			if err := e.Check(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	group = run.NewGroup(ctx)
	failure := false
	for _, r := range runners {
		group.Go(func(ctx context.Context) error {
			err := r.Run(ctx)
			if err != nil {
				b.locked(func() { failure = true; b.change() })
			}
			return err
		})
	}
	return group, func() (all, failed bool) {
		for _, r := range runners {
			if !r.begun() {
				return false, failure
			}
		}
		return true, failure
	}, nil
}
