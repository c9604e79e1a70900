package run

import (
	"context"
	"sync"
)

// Shared holds loops that several runtimes of a process share: they run from the first Start to the last stop. Each
// loop handles its own failures, and returns nil when its context ends. Safe for concurrent use.
type Shared struct {
	loops []func(ctx context.Context) error

	mu    sync.Mutex // guards the fields below
	users int
	group *Group
}

// NewShared returns loops that are not yet running.
func NewShared(loops ...func(ctx context.Context) error) *Shared { return &Shared{loops: loops} }

// Start makes the loops run until stop is called, or longer if other callers need them. The last stop returns when
// they have ended. stop must be called once. The end of ctx does not end the loops.
func (s *Shared) Start(ctx context.Context) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.group = NewGroup(context.WithoutCancel(ctx))
		for _, loop := range s.loops {
			s.group.Go(loop)
		}
	}
	return s.stop
}

func (s *Shared) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.group.Stop()
		_ = s.group.Wait() // its members return nil
	}
}
