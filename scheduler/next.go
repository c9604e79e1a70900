package scheduler

import (
	"errors"
	"fmt"
	"time"
)

// MaxOccurrences is how many due times Next and Occurrences give at most.
const MaxOccurrences = 10_000

// Next returns the first n due times of m after that moment, fewer when there are no more. Every counts from after.
// There are none for OnDemand, After and Dormant, which no clock decides. An error says what is wrong with m, or with
// n.
func Next(m Manifest, after time.Time, n int) ([]time.Time, error) {
	if n < 0 || n > MaxOccurrences {
		return nil, fmt.Errorf("next of %s: %d due times: want 0 to %d", m.Name, n, MaxOccurrences)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	p, err := m.definition().compile()
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.Name, err)
	}
	return p.next(after, n), nil
}

// ErrTooMany says that Occurrences were asked for a time with more than MaxOccurrences due times.
var ErrTooMany = errors.New("too many due times")

// Occurrences returns the due times of m from that moment until before the other: what a backfill fires. Every counts
// from the first of the two. More than MaxOccurrences of them are ErrTooMany.
func Occurrences(m Manifest, from, until time.Time) ([]time.Time, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	p, err := m.definition().compile()
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.Name, err)
	}
	out, err := p.between(from, until)
	if err != nil {
		return nil, fmt.Errorf("manifest %s from %v until %v: %w", m.Name, from, until, err)
	}
	return out, nil
}

// next counts Every from after, which is not among them.
func (p *plan) next(after time.Time, n int) []time.Time {
	s := p.slots(stored(after))
	if s == nil {
		return nil
	}
	var out []time.Time
	for t := after; len(out) < n; {
		if t = p.open(s.after(t)); t.IsZero() {
			break
		}
		out = append(out, t)
	}
	return out
}

// between counts Every from from, which is among them.
func (p *plan) between(from, until time.Time) ([]time.Time, error) {
	from, until = stored(from), stored(until)
	s := p.slots(from)
	if s == nil || !from.Before(until) {
		return nil, nil
	}
	before := from.Add(-time.Microsecond)
	if n, _ := s.count(before, until.Add(-time.Microsecond)); n > MaxOccurrences && p.Expires.IsZero() {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooMany, n, MaxOccurrences)
	}
	var out []time.Time
	for t := p.open(s.after(before)); !t.IsZero() && t.Before(until); t = p.open(s.after(t)) {
		if len(out) == MaxOccurrences {
			return nil, fmt.Errorf("%w: at most %d", ErrTooMany, MaxOccurrences)
		}
		out = append(out, t)
	}
	return out, nil
}
