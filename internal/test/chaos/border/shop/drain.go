package shop

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// Drain waits until everything is at rest: each order has ended, what is paid is shipped, and neither queues nor the
// broker have a message. What is left after within is found by the check. It returns how long it took.
func (l *Shop) Drain(ctx context.Context, within time.Duration) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if quiet, err := l.atRest(ctx); err == nil && quiet {
			break
		}
		if run.Sleep(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	return time.Since(begun)
}

func (l *Shop) atRest(ctx context.Context) (bool, error) {
	type sums struct{ Open, Shipped int }
	here, err := ask[sums](ctx, l.Orders, "ended")
	if err != nil {
		return false, err
	}
	there, err := ask[sums](ctx, l.Payments, "shipped")
	if err != nil || here[0].Open > 0 || there[0].Shipped < here[0].Shipped {
		return false, err
	}
	for _, s := range []*Site{l.Orders, l.Payments} {
		left, err := s.queued(ctx)
		if err != nil || len(left) > 0 {
			return false, err
		}
	}
	n, err := held(ctx, l.Broker)
	return n == 0, err
}
