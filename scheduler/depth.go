package scheduler

import (
	"context"
	"fmt"
	"time"
)

// Depth is how much waits for schedulers, by the database's clock. It is the same for all servers. Counts end at
// MostCounted.
type Depth struct {
	Late time.Duration // how long the first due manifest has waited to be evaluated; 0: none is due
	// how long a queued run has waited to be dispatched, the first of those that were counted; 0: none is queued
	Behind time.Duration

	Waiting int64 // runs that wait for a moment: a delay, or the pause before a retry
	Queued  int64 // runs that wait to be dispatched
	Active  int64 // runs whose message is on its way or in hand
	Dead    int64 // runs that failed for good, and wait for somebody
}

// MostCounted is where the counts of a Depth end.
const MostCounted = 100_000

// Depth reads how much waits, in one statement that costs the same whatever ended long ago. See MostCounted.
func (s *Scheduler) Depth(ctx context.Context) (d Depth, err error) {
	var late, behind float64
	row := s.pool.QueryRow(ctx, s.sql.Get("depth"), MostCounted)
	if err := row.Scan(&late, &behind, &d.Queued, &d.Waiting, &d.Active, &d.Dead); err != nil {
		return Depth{}, fmt.Errorf("read how much waits for the scheduler: %w", err)
	}
	d.Late, d.Behind = seconds(late), seconds(behind)
	return d, nil
}

// seconds is never less than nothing: a clock may go back.
func seconds(s float64) time.Duration { return time.Duration(max(0, s) * float64(time.Second)) }
