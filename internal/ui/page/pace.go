package page

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// pace is how much an endpoint handles. It is zero for a relay, which does not count.
type pace operate.Pace

// MarshalJSON writes the output of the command.
func (p pace) MarshalJSON() ([]byte, error) {
	return view.Paces([]operate.Pace{operate.Pace(p)}).Rows[0].JSON.MarshalJSON()
}

// Rate returns the rate for people, "" if nothing was handled.
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

// Hours returns the numbers handled in each of the last 24 hours.
func (p pace) Hours() []int64 { return p.Handled[:] }

// Average names the time over which the rate is averaged.
func (p pace) Average() string {
	return "on average over " + words.Span(p.Over.Round(time.Minute))
}

// addPace adds their rates to the rows of endpoints.
func addPace(ctx context.Context, s *Source, rows []endpointRow) error {
	all, err := s.Op.Endpoints().Pace(ctx)
	for _, one := range all {
		for n := range rows {
			if rows[n].Name == one.Endpoint {
				rows[n].Pace = pace(one)
			}
		}
	}
	return err
}
