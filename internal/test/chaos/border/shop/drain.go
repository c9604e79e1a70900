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
	var placed, ended, paid, shipped int
	if err := l.Orders.each(ctx, "at_rest_orders", []any{&placed, &ended, &paid}, func() {}); err != nil {
		return false, err
	}
	if err := l.Payments.each(ctx, "at_rest_payments", []any{&shipped}, func() {}); err != nil {
		return false, err
	}
	if ended < placed || shipped < paid {
		return false, nil
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
