package scheduler

import "context"

// Settle evaluates and dispatches by itself until neither finds anything, for tests outside the package.
func (s *Scheduler) Settle(ctx context.Context) error {
	for {
		c, err := s.cycle(ctx, noTerm)
		if err != nil {
			return err
		}
		again, err := s.pass(ctx)
		if err != nil {
			return err
		}
		if c.loaded+c.reaped+c.queued == 0 && !again {
			return nil
		}
	}
}
