package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/settings"
	"github.com/edda-go/edda/internal/wake"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// attach wakes w, and what else waits in e, when something has happened for its queue, until detach is called.
func attach(e *Endpoint, w wake.Waker) (detach func()) {
	hub := e.bus.hub
	stops := []func(){
		hub.Attach(e.queue.ID, w),
		hub.Listen(settings.Prefix, wake.OfQueue(e.queue.ID, e.settings.Look)),
		hub.Listen(limit.CallPrefix, func(name string) {
			if name == "" || name == e.name {
				e.permits.changed.Send()
				w.Wake()
			}
		}),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (b *Bus) wakeAfterCommit(ctx context.Context, to []*queue.Queue, out saga.Outgoing) {
	at := out.Info.Due
	if out.Delay > 0 {
		at = time.Now().Add(out.Delay)
	}
	for _, q := range to {
		b.notifier.Wake(ctx, q.ID, at)
	}
}

// nudgeLater is for a transaction whose commit we do not see. tx is its connection, or the *sql.Tx.
func (b *Bus) nudgeLater(ctx context.Context, tx any, to []*queue.Queue, out saga.Outgoing) {
	if out.Delay > 0 || out.Info.Due.After(time.Now()) {
		return // the poll is in time for it
	}
	queues := make([]int, len(to))
	for n, q := range to {
		queues[n] = q.ID
	}
	b.notifier.WakeLater(ctx, tx, queues)
}

// listen wakes workers when other processes ask for it. One endpoint of the bus does it for all; when it ends,
// another takes over.
func (b *Bus) listen(ctx context.Context) error {
	select {
	case b.session.listening <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-b.session.listening }()
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := b.listenOnce(ctx, retry.Reset)
		if ctx.Err() != nil {
			return nil
		}
		b.calm.Warn("edda: listening for wake-ups was interrupted, polling goes on", "error", err)
		if run.Sleep(ctx, retry.NextBackOff()) != nil {
			return nil
		}
	}
	return nil
}

func (b *Bus) listenOnce(ctx context.Context, connected func()) error {
	conn, err := pg.Dial(ctx, b.pool.Config())
	if err != nil {
		return err
	}
	defer pg.HangUp(ctx, conn)
	if err := b.session.lock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{b.schema.Channel()}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer b.session.unlock(ctx)
	if err := b.session.locked(ctx); err != nil {
		return err
	}
	connected()
	b.hub.Missed() // what was announced while nobody listened
	for {
		n, err := pg.Hear(ctx, conn)
		if err != nil {
			return err
		}
		b.hub.Hear(n.Payload)
	}
}
