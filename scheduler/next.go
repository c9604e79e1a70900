package scheduler

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
)

// MaxOccurrences is the maximum number of due times that Next and Occurrences return.
const MaxOccurrences = 10_000

// ErrTooMany means that a period has more than MaxOccurrences due times.
var ErrTooMany = plan.ErrTooMany

// Next returns the first n due times of m later than after, fewer if the schedule ends before. An Every is counted
// from after. Next returns nothing for OnDemand, After and Dormant, because no clock decides about them. It returns
// an error if m is invalid, or if n is not 0 to MaxOccurrences.
func Next(m Manifest, after time.Time, n int) ([]time.Time, error) {
	if n < 0 || n > MaxOccurrences {
		return nil, fmt.Errorf("next of %s: %d due times: want 0 to %d", m.Name, n, MaxOccurrences)
	}
	p, err := m.compile()
	if err != nil {
		return nil, err
	}
	return p.Next(after, n), nil
}

// Occurrences returns the due times of m from from until before until: the due times that a backfill of this period
// fires. An Every is counted from from. Occurrences returns ErrTooMany if there are more than MaxOccurrences.
func Occurrences(m Manifest, from, until time.Time) ([]time.Time, error) {
	p, err := m.compile()
	if err != nil {
		return nil, err
	}
	due, err := p.Between(from, until, MaxOccurrences)
	if err != nil {
		return nil, fmt.Errorf("manifest %s from %v until %v: %w", m.Name, from, until, err)
	}
	return due, nil
}
