package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/edda-go/edda/memory"
)

// tradeInMemory runs the same endpoints on a bus without a database.
func tradeInMemory(ctx context.Context, s settings, out io.Writer) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	counts, l := newTally(), &ledger{orders: map[int]*effects{}}
	b, err := memory.New(memory.Options{Events: counts.observe,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	bank := &bank{payWithin: s.payWithin}
	for _, spec := range append(cast(s, l), bank.endpoint(l)) {
		if _, err := memory.NewEndpoint(b, spec.Name, spec.Options, spec.Parts...); err != nil {
			return err
		}
	}
	stop, err := b.Start(ctx)
	if err != nil {
		return err
	}
	err = placeAndWatch(ctx, s,
		func(ctx context.Context, first, last int) error { return placeInMemory(ctx, b, l, first, last) },
		func(ctx context.Context, placed <-chan struct{}) error {
			depth := func(context.Context) (int64, error) { return depthInMemory(b), nil }
			return watch(ctx, depth, counts, placed, out)
		})
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	if err := counts.print(out); err != nil {
		return err
	}
	if dead := b.DeadLetters(); len(dead) > 0 {
		showLetter(dead[0], out)
	}
	return judge(l.verdicts(), s.orders, out)
}

// placeInMemory places some orders. Without a transaction the two steps of each can part, if the process ends.
func placeInMemory(ctx context.Context, b *memory.Bus, l *ledger, first, last int) error {
	for order := first; order < last; order++ {
		if _, err := b.Publish(ctx, placedNow(order)); err != nil {
			return fmt.Errorf("place order %d: %w", order, err)
		}
		l.add(leaves{{aPlaced, order, cents}})
	}
	return nil
}

func depthInMemory(b *memory.Bus) (waiting int64) {
	for _, q := range b.Queues() {
		waiting += int64(q.Ready + q.Delayed + q.InHand)
	}
	return waiting
}
