package page

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/operate/flow"
	"github.com/edda-go/edda/persistence"
)

// oldestRow is an instance that may be stuck.
type oldestRow struct {
	instanceRow
	Overdue time.Time `json:"overdue,omitzero"` // the timeout that should have come, and has not
}

const (
	oldestRead  = persistence.MaxLimit // instances that are looked at
	oldestShown = 10
	overdueBy   = time.Minute // before that it may be on its way
	endedWithin = time.Hour
	mostEnded   = 1000 // of a saga are counted
)

// Capped reports whether Ended is what was counted, and there may be more.
func (r sagaRow) Capped() bool { return r.Ended >= mostEnded }

// oldest looks at the instances that began first, and returns those that may be stuck: first those whose timeout is
// overdue, then those to which nothing has come for longest. An instance that is stuck grows old, so that it is among
// them sooner or later.
func oldest(ctx context.Context, s *Source, now time.Time) ([]oldestRow, error) {
	listed, err := s.Op.Sagas().Instances(ctx, persistence.ListOptions{Oldest: true, Limit: oldestRead})
	if err != nil {
		return nil, err
	}
	rows := []oldestRow{}
	for _, r := range instanceRows(listed) {
		if r.Over {
			continue
		}
		row := oldestRow{instanceRow: r}
		if !r.Next.IsZero() && r.Next.Before(now.Add(-overdueBy)) {
			row.Overdue = r.Next
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b oldestRow) int {
		switch {
		case a.Overdue.IsZero() == b.Overdue.IsZero():
			return cmp.Or(a.Overdue.Compare(b.Overdue), a.Changed.Compare(b.Changed))
		case a.Overdue.IsZero():
			return 1
		}
		return -1
	})
	return rows[:min(len(rows), oldestShown)], nil
}

// addHours adds how many instances of each saga started, by the hour, and how many ended in the last one.
func addHours(ctx context.Context, s *Source, rows []sagaRow) error {
	all, err := s.Flow.Pace(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for n := range rows {
		r := &rows[n]
		names, r.Hours = append(names, r.Name), make([]int64, flow.Hours)
		for _, one := range all {
			if one.Saga != r.Name {
				continue
			}
			for hour, started := range one.Started {
				r.Hours[hour] += started
			}
		}
	}
	ended, err := s.Op.History().EndedSince(ctx, names, endedWithin, mostEnded)
	for n := range rows {
		rows[n].Ended = ended[rows[n].Name]
	}
	return err
}
