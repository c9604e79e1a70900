package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/counters"
	"github.com/edda-go/edda/internal/pgerr"
)

// Hours is how many hours a Pace tells of, the present one included.
const Hours = 24

// Pace is what one saga of an endpoint did, hour by hour, in all processes. The last number of each is of the present
// hour.
type Pace struct {
	Endpoint string
	Saga     string // "" stands for the endpoint's plain handlers
	Handled  [Hours]int64
	Started  [Hours]int64 // instances

	// PerMinute is how many messages were handled in a minute, on average Over the part of the present hour and the one
	// before in which they were counted. It is 0 if none was.
	PerMinute float64
	Over      time.Duration
}

// Pace returns what sagas and plain handlers did in the last 24 hours, in the order of endpoints and sagas.
func (r *Reader) Pace(ctx context.Context) ([]Pace, error) {
	rows, err := r.counters.Hours(ctx, r.pool, Hours*time.Hour)
	if err != nil {
		return nil, fmt.Errorf("read the pace of endpoints: %w", pgerr.Explain(err))
	}
	slices.SortStableFunc(rows, func(a, b counters.Hour) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Saga, b.Saga))
	})
	all := []Pace{}
	for from := 0; from < len(rows); {
		until := from + 1
		for until < len(rows) && rows[until].Endpoint == rows[from].Endpoint && rows[until].Saga == rows[from].Saga {
			until++
		}
		all = append(all, paceOf(rows[from:until]))
		from = until
	}
	return all, nil
}

// recent is how many hours the rate is of.
const recent = 2

func paceOf(rows []counters.Hour) Pace {
	p := Pace{Endpoint: rows[0].Endpoint, Saga: rows[0].Saga}
	var since, now time.Time
	for _, r := range rows {
		ago := int(r.Now.Truncate(time.Hour).Sub(r.Hour) / time.Hour)
		if ago < 0 || ago >= Hours {
			continue
		}
		p.Handled[Hours-1-ago], p.Started[Hours-1-ago] = r.Steps, r.Starts
		if now = r.Now; ago < recent && since.IsZero() { // rows are in the order of hours
			since = r.First
		}
	}
	if !since.IsZero() {
		p.Over = max(now.Sub(since), time.Minute)
		p.PerMinute = float64(p.Handled[Hours-1]+p.Handled[Hours-recent]) / p.Over.Minutes()
	}
	return p
}
