package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// listen rings the bells when others call. Whatever it does not hear is found by polling.
func (s *Scheduler) listen(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := s.listenOnce(ctx, retry.Reset)
		if ctx.Err() != nil {
			return nil
		}
		s.log.Warn("edda: the scheduler's listening was interrupted, polling goes on", "error", err)
		_ = run.Sleep(ctx, retry.NextBackOff()) // the loop sees the end of ctx
	}
	return nil
}

func (s *Scheduler) listenOnce(ctx context.Context, connected func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // it is going away whatever the server says
	}()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.schema.Channel()}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	connected()
	s.due.ring() // what was missed while nobody listened
	s.ready.ring()
	s.keeper.Wake()
	s.singletons.heard("")
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		for payload := range strings.SplitSeq(n.Payload, ",") {
			s.hear(payload)
		}
	}
}

func (s *Scheduler) hear(payload string) {
	switch payload {
	case evaluatePayload:
		s.due.ring()
	case dispatchPayload:
		s.ready.ring()
	case lease.WakePrefix + LeaseName:
		s.keeper.Wake()
	default:
		s.singletons.heard(payload)
	}
}
