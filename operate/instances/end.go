package instances

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// End says which instance is to end.
type End struct {
	Saga, Key string
	ID        saga.ID // that the caller has seen; another one of the key is ErrNotFound, and zero is any
	Version   int64   // that the caller has seen; another one is ErrVersion, and 0 is any
	Reason    string  // "" is that of the context, see audit.Because

	Definition *saga.Definition // tells what is secret in the state; nil is not known
}

// Ended is the instance as it was when it ended.
type Ended struct {
	ID       saga.ID
	Version  int64
	State    []byte
	Timeouts []saga.Pending // that were cancelled
}

// End ends an instance as if it had completed, without its handlers: its row is deleted with its timeouts, its key may
// start anew, and no saga is told. A run of a manifest that the instance was started for is cancelled. What is on its
// way to the instance finds none, and is treated as the saga says of a missing one. What a program has collected
// beside the instance, such as persistence.Items, stays. A saga that remembers its instances does not remember this
// one.
//
// A timeout that a worker has in hand at this moment is discarded by it. Errors: ErrNotFound, ErrVersion,
// ErrRemembered.
func (o *Operator) End(ctx context.Context, e End) (done Ended, err error) {
	on := target{saga: e.Saga, key: e.Key, id: e.ID, version: e.Version, def: e.Definition, reason: e.Reason}
	err = o.locked(ctx, on, func(c *change) (err error) {
		done, err = c.end(ctx)
		return err
	})
	if err != nil {
		return Ended{}, fmt.Errorf("end saga %.80s/%.80q: %w", e.Saga, e.Key, err)
	}
	return done, nil
}

func (c *change) end(ctx context.Context) (Ended, error) {
	i := &c.row.Instance
	keeps, err := c.keeps(ctx)
	if err != nil {
		return Ended{}, err
	}
	if err := c.dropTimeouts(ctx, i.Pending...); err != nil {
		return Ended{}, err
	}
	page, err := c.record(ctx, history.Stopped, keeps.kept(i.State))
	if err != nil {
		return Ended{}, err
	}
	if err := c.save(ctx, persistence.Complete, page); err != nil {
		return Ended{}, err
	}
	if run := i.Originator.Run; !run.IsZero() {
		_, err := c.tx.Exec(ctx, c.sql.Get("end_run"), [16]byte(run), i.Originator.RunAttempt, "an operator has ended "+
			c.name())
		if err != nil {
			return Ended{}, fmt.Errorf("end its run: %w", err)
		}
	}
	before := map[string]any{"version": i.Version, "state": keeps.public(i.State), "timeouts": len(i.Pending)}
	return Ended{ID: i.ID, Version: i.Version, State: i.State, Timeouts: i.Pending},
		c.note(ctx, "saga.end", before, nil)
}
