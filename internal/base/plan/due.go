package plan

import (
	"errors"
	"fmt"
	"time"
)

// ErrTooMany means that the period has more due times than the caller's limit.
var ErrTooMany = errors.New("too many due times")

// Next returns the first n due times after the given time, fewer if there are no more. An interval is counted from
// after, which is not among them.
func (p *Plan) Next(after time.Time, n int) []time.Time {
	s := p.slots(Stored(after))
	if s == nil {
		return nil
	}
	var due []time.Time
	for t := after; len(due) < n; {
		if t = p.open(s.after(t)); t.IsZero() {
			break
		}
		due = append(due, t)
	}
	return due
}

// Between returns the due times from from until before until. An interval is counted from from, which is among them.
// If there are more than most, it returns ErrTooMany.
func (p *Plan) Between(from, until time.Time, most int) ([]time.Time, error) {
	from, until = Stored(from), Stored(until)
	s := p.slots(from)
	if s == nil || !from.Before(until) {
		return nil, nil
	}
	if n, _ := s.count(from.Add(-time.Microsecond), until.Add(-time.Microsecond)); n > most && p.Expires.IsZero() {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooMany, n, most)
	}
	due, more := p.within(s, from, until, most)
	if !more.IsZero() {
		return nil, fmt.Errorf("%w: at most %d", ErrTooMany, most)
	}
	return due, nil
}

// Fill returns the due times of a stored manifest from from until before until, at most most of them, and the first
// one beyond that, or zero. due is the stored due time of the manifest, zero if it is not due: an interval keeps the
// points of its grid. ok is false if the rule has no clock.
func (p *Plan) Fill(due, from, until time.Time, most int) (times []time.Time, more time.Time, ok bool) {
	anchor := due
	if anchor.IsZero() {
		anchor = until
	}
	if every := p.Rule.Every; every > 0 && anchor.After(from) { // an interval begins at its anchor
		anchor = anchor.Add(-(anchor.Sub(from)/every + 1) * every)
	}
	s := p.slots(anchor)
	if s == nil {
		return nil, more, false
	}
	times, more = p.within(s, Stored(from), until, most)
	return times, more, true
}

// within returns the due times from from until before until, and the first one beyond most.
func (p *Plan) within(s slots, from, until time.Time, most int) (due []time.Time, more time.Time) {
	t := p.open(s.after(from.Add(-time.Microsecond)))
	for ; !t.IsZero() && t.Before(until); t = p.open(s.after(t)) {
		if len(due) == most {
			return due, t
		}
		due = append(due, t)
	}
	return due, more
}
