package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

var (
	// ErrNoTimeout means that an instance has no pending timeout of the name, or several.
	ErrNoTimeout = errors.New("there is no such timeout")
	// ErrInHand means that the message of a timeout has left its place in the queue: a worker is handling it at this
	// moment, or has failed to, and the message waits for its next attempt.
	ErrInHand = errors.New("the timeout is being handled")
)

// FireTimeout implements operate.Instances.FireTimeout.
func (s *Store) FireTimeout(ctx context.Context, t Target, name string) (saga.Pending, error) {
	return s.retime(ctx, t, name, "fire", func(c *change, p *saga.Pending) error { return c.move(ctx, p, time.Time{}) })
}

// MoveTimeout implements operate.Instances.MoveTimeout.
func (s *Store) MoveTimeout(ctx context.Context, t Target, name string, at time.Time) (saga.Pending, error) {
	if at.Year() < 1 || at.Year() > 9999 || at.IsZero() {
		return saga.Pending{}, fmt.Errorf("move timeout %.80q: the time is %v", name, at)
	}
	return s.retime(ctx, t, name, "move", func(c *change, p *saga.Pending) error { return c.move(ctx, p, at) })
}

// CancelTimeout implements operate.Instances.CancelTimeout.
func (s *Store) CancelTimeout(ctx context.Context, t Target, name string) (saga.Pending, error) {
	return s.retime(ctx, t, name, "cancel",
		func(c *change, p *saga.Pending) error { return c.dropTimeouts(ctx, *p) })
}

// retime changes one timeout. A cancelled timeout is removed from the row.
func (s *Store) retime(
	ctx context.Context, t Target, name, verb string, do func(c *change, p *saga.Pending) error,
) (done saga.Pending, err error) {
	var woken *queue.Queue
	err = s.locked(ctx, t, func(c *change) error {
		i := &c.row.Instance
		at, err := pendingOf(i.Pending, name)
		if err != nil {
			return err
		}
		i.Pending = slices.Clone(i.Pending)
		before := toldOf(i.Pending[at])
		if err := do(c, &i.Pending[at]); err != nil {
			return err
		}
		var after any
		if done = i.Pending[at]; verb == "cancel" {
			i.Pending = slices.Delete(i.Pending, at, at+1)
		} else {
			after = toldOf(done)
		}
		woken = c.woken
		keeps, err := c.keeps(ctx)
		if err != nil {
			return err
		}
		page, err := c.record(ctx, history.Retimed, keeps.kept(i.State))
		if err != nil {
			return err
		}
		if err := c.save(ctx, persistence.Update, page); err != nil {
			return err
		}
		return c.note(ctx, "timeout."+verb, before, after)
	})
	if err != nil {
		return saga.Pending{}, fmt.Errorf("%s timeout %.80q of %s: %w", verb, name, t.name(), err)
	}
	if woken != nil {
		s.wake(ctx, woken)
	}
	return done, nil
}

// wake wakes the workers of a queue. It drops errors, because workers also find the timeout at their next poll.
func (s *Store) wake(ctx context.Context, q *queue.Queue) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	pipeline := &pgx.Batch{}
	pipeline.Queue(s.sql.Get("nudge"), s.schema.Channel(), strconv.Itoa(q.ID))
	_ = s.pool.SendBatch(ctx, pipeline).Close()
}

// pendingOf finds a timeout by its name, its kind or its id.
func pendingOf(all []saga.Pending, name string) (at int, err error) {
	for _, is := range []func(saga.Pending) bool{
		func(p saga.Pending) bool { return p.Name == name },
		func(p saga.Pending) bool { return p.Kind == name },
		func(p saga.Pending) bool { return p.ID.String() == name },
	} {
		at := slices.IndexFunc(all, is)
		if at < 0 || name == "" {
			continue
		}
		if slices.ContainsFunc(all[at+1:], is) {
			return 0, fmt.Errorf("%w: several are pending of kind %.80s; give the id of one", ErrNoTimeout, name)
		}
		return at, nil
	}
	return 0, fmt.Errorf("%w: %d others are pending", ErrNoTimeout, len(all))
}

// toldOf returns the data of a timeout for the audit.
func toldOf(p saga.Pending) map[string]any {
	told := map[string]any{"kind": p.Kind, "due": p.Due.UTC()}
	if p.Name != "" {
		told["name"] = p.Name
	}
	return told
}

// move moves the message of a timeout, in whichever queue it waits, and p with it. The zero time is now.
func (c *change) move(ctx context.Context, p *saga.Pending, at time.Time) error {
	known, err := c.queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range known {
		var due time.Time
		err := c.tx.QueryRow(ctx, q.SQL("retime"), p.Due, [16]byte(p.ID), at).Scan(&due)
		if err == nil {
			p.Due, c.woken = due.UTC(), q
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("move it in the queue of %s: %w", q.Endpoint, err)
		}
	}
	return ErrInHand
}

// queues returns all queues that may have a timeout.
func (c *change) queues(ctx context.Context) (all []*queue.Queue, err error) {
	known, err := c.routes.SeenBy(ctx, c.tx)
	if err != nil {
		return nil, err
	}
	for _, number := range slices.Sorted(maps.Keys(known.ByID)) {
		if q := known.ByID[number]; !q.Relay {
			all = append(all, q)
		}
	}
	return all, nil
}

// dropTimeouts deletes the messages of timeouts, in whichever queue they wait. A message that a worker has locked
// stays; the worker discards it, because its instance no longer lists the timeout.
func (c *change) dropTimeouts(ctx context.Context, gone ...saga.Pending) error {
	if len(gone) == 0 {
		return nil
	}
	known, err := c.queues(ctx)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	for _, q := range known {
		due, id := pg.Timestamps(), pg.UUIDs() // one array cannot be sent twice
		for _, p := range gone {
			due.Time(p.Due)
			id.UUID(p.ID)
		}
		pipeline.Queue(q.SQL("delete_timeouts"), due, id)
	}
	if err := c.tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("delete its timeouts: %w", err)
	}
	return nil
}
