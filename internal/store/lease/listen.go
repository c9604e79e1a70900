package lease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Listener receives the notifications of a schema, for programs that have no other listener. It has a connection of
// its own.
type Listener struct {
	Pool    *pgxpool.Pool        // provides the configuration of the connection
	Channel string               // pg.Schema.Channel
	Heard   func(payload string) // must not block. Called with "" if notifications may have been missed
	Logger  *slog.Logger
}

// Run listens until ctx ends, and then returns nil. A connection that breaks is opened again.
func (l Listener) Run(ctx context.Context) error {
	line, retry := NewLine(l.Pool), run.Pauses{First: 100 * time.Millisecond, Most: 10 * time.Second}
	retry.Reopen(ctx, func(ctx context.Context) error { return l.listen(ctx, line) },
		func(ctx context.Context) error { return l.hear(ctx, line) },
		func(err error) { l.Logger.Warn("edda: listening was interrupted, polling continues", "error", err) })
	return nil
}

func (l Listener) listen(ctx context.Context, line *Line) error {
	if err := line.connect(ctx); err != nil {
		return err
	}
	if _, err := line.conn.Exec(ctx, "listen "+pgx.Identifier{l.Channel}.Sanitize()); err != nil {
		pg.HangUp(ctx, line.conn)
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

func (l Listener) hear(ctx context.Context, line *Line) error {
	defer pg.HangUp(ctx, line.conn)
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
