package page

import (
	"context"
	"time"
)

// oldestRow is an instance that may be stuck.
type oldestRow struct {
	instanceRow
	Overdue time.Time // the timeout that should have come, and has not
}

const (
	oldestShown = 10
	endedWithin = time.Hour
	mostEnded   = 1000 // of a saga are counted
)

// Capped reports whether there may be more ended instances than Ended.
func (r sagaRow) Capped() bool { return r.Ended >= mostEnded }

// addHours adds how many instances of each saga started, by the hour, and how many ended in the last one.
func addHours(ctx context.Context, s *Source, rows []sagaRow) error {
	all, err := s.Op.Endpoints().SagaPace(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for n := range rows {
		r := &rows[n]
		names, r.Hours = append(names, r.Name), make([]int64, 24)
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
