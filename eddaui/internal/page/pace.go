package page

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/eddaui/internal/words"
	"github.com/edda-go/edda/operate/flow"
)

// pace is what an endpoint handles. The tables have it by the hour.
type pace struct {
	PerMinute float64 `json:"handled_per_minute"` // on average over the present hour and the one before
	Over      Seconds `json:"over_seconds"`
	Hours     []int64 `json:"handled_by_hour"` // of the last 24, the present one last; nil: nothing was counted
}

// Rate is the rate for people, "" if nothing was handled.
func (p pace) Rate() string {
	switch {
	case p.PerMinute == 0:
		return ""
	case p.PerMinute < 0.1:
		return "under 0.1"
	case p.PerMinute < 10:
		return strconv.FormatFloat(p.PerMinute, 'f', 1, 64)
	}
	return words.Count(int64(math.Round(p.PerMinute)))
}

// Average says over which time the rate is.
func (p pace) Average() string {
	return "on average over " + words.Span(time.Duration(p.Over).Round(time.Minute))
}

// add adds what a saga of the endpoint handles.
func (p *pace) add(of flow.Pace) {
	if p.Hours == nil {
		p.Hours = make([]int64, flow.Hours)
	}
	for n, handled := range of.Handled {
		p.Hours[n] += handled
	}
	p.PerMinute += of.PerMinute
	p.Over = max(p.Over, Seconds(of.Over))
}

// addPace adds to the rows of endpoints what they handle.
func addPace(ctx context.Context, s *Source, rows []endpointRow) error {
	all, err := s.Flow.Pace(ctx)
	for _, one := range all {
		for n := range rows {
			if rows[n].Name == one.Endpoint {
				rows[n].Pace.add(one)
			}
		}
	}
	return err
}
