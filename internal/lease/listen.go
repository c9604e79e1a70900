package lease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Listener hears the notifications of a schema, for who has no other listener. It has a connection of its own.
type Listener struct {
	Pool    *pgxpool.Pool        // says how to connect
	Channel string               // pg.Schema.Channel
	Heard   func(payload string) // must not block. "" is called when something may have gone unheard
	Logger  *slog.Logger
}

// Run listens until ctx ends, and then returns nil. A connection that breaks is opened again.
func (l Listener) Run(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := l.listen(ctx, retry.Reset)
		if ctx.Err() != nil {
			return nil
		}
		l.Logger.Warn("edda: listening was interrupted, polling goes on", "error", err)
		_ = run.Sleep(ctx, retry.NextBackOff()) // the loop sees the end of ctx
	}
	return nil
}

func (l Listener) listen(ctx context.Context, connected func()) error {
	line := NewLine(l.Pool)
	if err := line.connect(ctx); err != nil {
		return err
	}
	defer pg.HangUp(ctx, line.conn)
	if _, err := line.conn.Exec(ctx, "listen "+pgx.Identifier{l.Channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	connected()
	l.Heard("")
	for {
		n, err := pg.Hear(ctx, line.conn)
		if err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		if n != nil {
			l.Heard(n.Payload)
		}
	}
}
