package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

// Find returns the number of an endpoint's queue. If the queue does not exist, Find creates it if create is set, and
// otherwise returns ErrNotInstalled, with the remedy.
func (r *Router) Find(ctx context.Context, endpoint string, create bool) (id int, err error) {
	err = r.pool.QueryRow(ctx, r.sql.Get("find_queue"), endpoint).Scan(&id)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("find its queue: %w", pgerr.Explain(err))
	case err == nil:
		return id, nil
	case !create:
		return 0, fmt.Errorf("%w: call Endpoint.Install, or run the command \"edda migrate install %s\", "+
			"or set bus.Options.AutoInstall", ErrNotInstalled, endpoint)
	}
	if id, err = r.Create(ctx, endpoint); pgerr.ClassOf(err) == pgerr.Denied {
		err = fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return id, err
}

// Create creates the queue of an endpoint, unless it exists, and returns its number. It needs the right to create
// tables.
func (r *Router) Create(ctx context.Context, endpoint string) (id int, err error) {
	err = r.pool.Row(ctx, r.sql.Get("create_queue"), endpoint).Scan(&id)
	if pgerr.ClassOf(err) == pgerr.Denied {
		return 0, fmt.Errorf("%w (this role may not create tables: let the owner of the schema install the endpoint "+
			"once, with Endpoint.Install or the command \"edda migrate install %s\")", err, endpoint)
	}
	return id, pgerr.Explain(err)
}

// Subscribe adds the kinds that a queue is not subscribed to yet. It waits for every transaction that is publishing,
// so that each such transaction either commits before the subscription or reads it.
func (r *Router) Subscribe(ctx context.Context, id int, kinds []string) error {
	var missing int
	if err := r.pool.QueryRow(ctx, r.sql.Get("missing_subscriptions"), id, kinds).Scan(&missing); err != nil {
		return fmt.Errorf("read its subscriptions: %w", pgerr.Explain(err))
	}
	if missing == 0 {
		return nil
	}
	for {
		err := r.trySubscribe(ctx, id, kinds)
		if pgerr.ClassOf(err) != pgerr.Busy {
			r.Forget()
			if err != nil {
				return fmt.Errorf("subscribe: %w", pgerr.Explain(err))
			}
			return nil
		}
		// A long transaction is publishing. Others would queue up behind a waiting lock request, so this waits in
		// short pieces.
		if err := run.Sleep(ctx, run.Jitter(100*time.Millisecond)); err != nil {
			return fmt.Errorf("subscribe: a transaction that publishes is still open: %w", err)
		}
	}
}

func (r *Router) trySubscribe(ctx context.Context, id int, kinds []string) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(LockTimeout(), "50ms")
		batch.Queue(r.sql.Get("lock_subscriptions"))
		batch.Queue(r.sql.Get("subscribe"), id, kinds)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Unsubscribe ends the delivery of kinds to a queue. Messages that are in the queue stay.
func (r *Router) Unsubscribe(ctx context.Context, id int, kinds []string) error {
	defer r.Forget()
	_, err := r.pool.Exec(ctx, r.sql.Get("unsubscribe"), id, kinds)
	return pgerr.Explain(err)
}
