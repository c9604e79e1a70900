package instances

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// End selects the instance to end.
type End struct {
	Saga, Key string
	ID        saga.ID // expected id; if the key has a different instance, ErrNotFound; zero is any
	Version   int64   // expected version; if it has changed, ErrVersion; 0 is any
	Reason    string  // "" is the reason of the context, see audit.Because

	Definition *saga.Definition // marks the secrets of the state; nil is unknown
}

// Ended describes the instance at its end.
type Ended struct {
	ID       saga.ID
	Version  int64
	State    []byte
	Timeouts []saga.Pending // cancelled by the end
}

// End ends an instance as if it had completed, without calling its handlers. It deletes the instance's row and its
// timeouts; the key may start again, and no other saga is notified. If a run of a manifest started the instance, the
// run is cancelled. Messages on their way to the instance find no instance, and are treated as the saga treats
// messages for a missing one. Data that a program keeps beside the instance, such as persistence.Items, stays. A saga
// that remembers its completed instances does not remember this one.
//
// If a worker is handling a timeout of the instance at this moment, the worker discards it. End returns ErrNotFound,
// ErrVersion, ErrRemembered or ErrFaulty.
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
