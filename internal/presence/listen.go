package presence

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// listen wakes workers when other processes ask for it. Its connection holds the lock of the session.
func (s *Session) listen(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := s.listenOnce(ctx, retry.Reset)
		if ctx.Err() != nil {
			return nil
		}
		s.options.Calm.Warn("edda: listening for wake-ups was interrupted, polling goes on", "error", err)
		if run.Sleep(ctx, retry.NextBackOff()) != nil {
			return nil
		}
	}
	return nil
}

func (s *Session) listenOnce(ctx context.Context, connected func()) error {
	conn, err := pg.Dial(ctx, s.options.Pool.Config())
	if err != nil {
		return err
	}
	defer pg.HangUp(ctx, conn)
	if err := s.lock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.options.Schema.Channel()}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer s.unlock(ctx)
	if err := s.locked(ctx); err != nil {
		return err
	}
	connected()
	s.options.Hub.Missed() // what was announced while this process did not listen
	for {
		n, err := pg.Hear(ctx, conn)
		if err != nil {
			return err
		}
		s.options.Hub.Hear(n.Payload)
	}
}
