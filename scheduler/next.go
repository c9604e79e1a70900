package scheduler

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
)

// MaxOccurrences is how many due times Next and Occurrences give at most.
const MaxOccurrences = 10_000

// ErrTooMany says that Occurrences were asked for a time with more than MaxOccurrences due times.
var ErrTooMany = plan.ErrTooMany

// Next returns the first n due times of m after that moment, fewer if there are no more. Every counts from after. There
// are none for OnDemand, After and Dormant, which no clock decides. An error says what is wrong with m, or with n.
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

// Occurrences returns the due times of m from that moment until before the other: what a backfill fires. Every counts
// from the first of the two. More than MaxOccurrences of them are ErrTooMany.
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
