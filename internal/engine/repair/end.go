package repair

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// End implements operate.Instances.End, and returns the instance as it was.
func (s *Store) End(ctx context.Context, t Target) (was saga.Instance, err error) {
	err = s.locked(ctx, t, func(c *change) error {
		was = c.row.Instance
		return c.end(ctx)
	})
	if err != nil {
		return saga.Instance{}, fmt.Errorf("end %s: %w", t.name(), err)
	}
	return was, nil
}

func (c *change) end(ctx context.Context) error {
	i := &c.row.Instance
	keeps, err := c.keeps(ctx)
	if err != nil {
		return err
	}
	if err := c.dropTimeouts(ctx, i.Pending...); err != nil {
		return err
	}
	page, err := c.record(ctx, history.Stopped, keeps.kept(i.State))
	if err != nil {
		return err
	}
	if err := c.save(ctx, persistence.Complete, page); err != nil {
		return err
	}
	if run := i.Originator.Run; !run.IsZero() {
		_, err := c.tx.Exec(ctx, c.sql.Get("end_run"), [16]byte(run), i.Originator.RunAttempt, "an operator has ended "+
			c.name())
		if err != nil {
			return fmt.Errorf("end its run: %w", err)
		}
	}
	before := map[string]any{"version": i.Version, "state": keeps.public(i.State), "timeouts": len(i.Pending)}
	return c.note(ctx, "saga.end", before, nil)
}
