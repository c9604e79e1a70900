package memory

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/run"
)

type runner interface {
	Run(ctx context.Context) error
	begun() bool // guarded by the bus's mutex
}

// Run runs every endpoint, scheduler and singleton that was made on the bus before, until ctx ends and all have ended.
// No message is taken before all endpoints are known. The first error ends all of them.
func (b *Bus) Run(ctx context.Context) error {
	group, _, err := b.start(ctx)
	if err != nil {
		return err
	}
	return group.Wait()
}

// Start is Run for tests. It returns when everything runs, so that Advance knows of it; stop ends it, waits for the end
// and returns the first error.
func (b *Bus) Start(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	group, all, err := b.start(ctx)
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
		begun, changed := true, b.changed
		for _, r := range all {
			begun = begun && r.begun()
		}
		b.mu.Unlock()
		if begun {
			return stop, nil
		}
		if run.Wait(ctx, forEver, changed) == run.Ended {
			return nil, fmt.Errorf("start the memory bus: %w", context.Cause(ctx))
		}
	}
}

func (b *Bus) start(ctx context.Context) (*run.Group, []runner, error) {
	b.mu.Lock()
	all := b.runners
	b.mu.Unlock()
	for _, r := range all {
		if e, ok := r.(*Endpoint); ok {
			if err := e.Check(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	group := run.NewGroup(ctx)
	for _, r := range all {
		group.Go(r.Run)
	}
	return group, all, nil
}
