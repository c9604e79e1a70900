package persistence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// overdueBy is the delay after which a timeout counts as overdue.
const overdueBy = time.Minute

// QuietWalk is the largest number of instances that ListOptions.Quiet reads, the oldest first, to find MaxLimit live
// ones. Remembered instances count too.
const QuietWalk = 10_000

// quiet returns the instances that may be stuck, among the oldest live ones. A stuck instance grows old, so it is
// among them as soon as fewer than MaxLimit older instances live.
func (s *Store) quiet(ctx context.Context, q Queryer, most int) ([]Listed, error) {
	rows, err := q.Query(ctx, s.sql.Get("clock"), pg.Planned)
	if err != nil {
		return nil, fmt.Errorf("list saga instances: %w", err)
	}
	now, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	if err != nil {
		return nil, fmt.Errorf("list saga instances: %w", err)
	}
	all, err := listed(ctx, q, s.sql.Get("quiet"), MaxLimit, QuietWalk)
	if err != nil {
		return nil, err
	}
	for n := range all {
		all[n].Overdue = overdue(all[n], now.Add(-overdueBy))
	}
	slices.SortStableFunc(all, func(a, b Listed) int {
		switch {
		case a.Overdue.IsZero() == b.Overdue.IsZero():
			return cmp.Or(a.Overdue.Compare(b.Overdue), a.Changed.Compare(b.Changed))
		case a.Overdue.IsZero():
			return 1
		}
		return -1
	})
	return all[:min(len(all), most)], nil
}

// overdue returns the due time of the first timeout of an instance if it was due before a time.
func overdue(l Listed, before time.Time) (first time.Time) {
	for _, p := range l.Instance.Pending {
		if p.Due.Before(before) && (first.IsZero() || p.Due.Before(first)) {
			first = p.Due
		}
	}
	return first
}
