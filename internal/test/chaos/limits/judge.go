package limits

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
)

func judgeLimits(ctx context.Context, l *lab.Lab) error {
	if err := l.Exec(ctx, sql.Get("note_spans")); err != nil {
		return err
	}
	var runs, changes int
	var unused time.Duration
	if err := l.Row(ctx, sql.Get("figures_of_slots"), nil, &runs, &changes, &unused); err != nil {
		return err
	}
	l.Fact("workers", l.Workers)
	l.Fact("runs", runs)
	l.Fact("changes", changes)
	l.Fact("unused", unused)
	l.Expect(runs > 0, "nothing ran", "no handler ran")
	l.Expect(unused <= reuse, "unused", "fewer handlers than allowed ran for %v, and the most is %v", unused, reuse)
	if err := l.CheckEffects(ctx, l.Pool); err != nil {
		return err
	}
	return l.CheckAll(ctx, l.Pool, "check_above", "check_stale", "check_twice", "check_starved")
}
