package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// Install creates the endpoint's queue and subscribes it to its kinds. It needs the right to create tables, and
// does nothing when that was done before. When it returns, every event published from then on reaches the queue.
func (e *Endpoint) Install(ctx context.Context) error {
	if _, err := e.createQueue(ctx); err != nil {
		return fmt.Errorf("install endpoint %s: %w", e.name, err)
	}
	if err := e.settleRelay(ctx); err != nil {
		return fmt.Errorf("install endpoint %s: %w", e.name, err)
	}
	if err := e.subscribe(ctx); err != nil {
		return err
	}
	return e.findLimit(ctx)
}

func (e *Endpoint) createQueue(ctx context.Context) (id int, err error) {
	err = e.bus.pool.Row(ctx, e.bus.sql.Get("create_queue"), e.name).Scan(&id)
	if pg.ClassOf(err) == pg.Denied {
		return 0, fmt.Errorf("%w (this role may not create tables: let the owner of the schema install the "+
			"endpoint once, with Endpoint.Install or the command \"edda migrate install %s\")", err, e.name)
	}
	return id, explain(err)
}

func (e *Endpoint) findQueue(ctx context.Context) (id int, err error) {
	b := e.bus
	err = b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && b.autoInstall:
		if id, err = e.createQueue(ctx); pg.ClassOf(err) == pg.Denied {
			err = fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
		return id, err
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("%w: call Endpoint.Install, or run the command \"edda migrate install %s\", or set "+
			"bus.Options.AutoInstall", ErrNotInstalled, e.name)
	}
	if err != nil {
		return 0, fmt.Errorf("find its queue: %w", explain(err))
	}
	return id, nil
}

// subscribe adds the kinds that are not subscribed yet. It waits for every transaction that is publishing, so
// that what they publish is either before the subscription or seen by it.
func (e *Endpoint) subscribe(ctx context.Context) error {
	b, kinds := e.bus, e.handlers.subscribed
	var (
		id      int
		missing int
	)
	if err := b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id); err != nil {
		return fmt.Errorf("find its queue: %w", explain(err))
	}
	if err := b.pool.QueryRow(ctx, b.sql.Get("missing_subscriptions"), id, kinds).Scan(&missing); err != nil {
		return fmt.Errorf("read its subscriptions: %w", explain(err))
	}
	if missing == 0 {
		return nil
	}
	for {
		err := e.trySubscribe(ctx, id, kinds)
		if pg.ClassOf(err) != pg.Busy {
			b.routes.forget()
			if err != nil {
				return fmt.Errorf("subscribe: %w", explain(err))
			}
			return nil
		}
		// Somebody is publishing in a long transaction. Others would queue up behind a lock request that
		// waits, so it waits in short pieces.
		if err := run.Sleep(ctx, run.Jitter(100*time.Millisecond)); err != nil {
			return fmt.Errorf("subscribe: a transaction that publishes is still open: %w", err)
		}
	}
}

func (e *Endpoint) trySubscribe(ctx context.Context, id int, kinds []string) error {
	return pgx.BeginFunc(ctx, e.bus.pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(e.bus.sql.Get("lock_timeout"), "50ms")
		batch.Queue(e.bus.sql.Get("lock_subscriptions"))
		batch.Queue(e.bus.sql.Get("subscribe"), id, kinds)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// Unsubscribe ends the delivery of kinds to the endpoint: commands find no route to it, events no copy. What is
// in the queue stays. A later Run of an endpoint that handles a kind subscribes it again.
func (e *Endpoint) Unsubscribe(ctx context.Context, kinds ...string) error {
	b := e.bus
	var id int
	if err := b.pool.QueryRow(ctx, b.sql.Get("find_queue"), e.name).Scan(&id); err != nil {
		return fmt.Errorf("unsubscribe endpoint %s: %w", e.name, explain(err))
	}
	defer b.routes.forget()
	if _, err := b.pool.Exec(ctx, b.sql.Get("unsubscribe"), id, kinds); err != nil {
		return fmt.Errorf("unsubscribe endpoint %s: %w", e.name, explain(err))
	}
	return nil
}
