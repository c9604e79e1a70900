package scheduler

import "context"

// Settle evaluates and dispatches until neither finds anything, for tests outside the package.
func (s *Scheduler) Settle(ctx context.Context) error {
	for {
		more, err := s.engine.Once(ctx)
		if err != nil || !more {
			return err
		}
	}
}
