package scheduler

import "time"

// civil is a calendar on the wall of a zone: the due times of Cron. One sentence is the whole rule of changes of the
// clock: a moment of the calendar is due when the clock first shows it or a later one.
type civil struct {
	*calendar
	zone *time.Location
}

// sway is more than the clocks of the earth are apart: what a clock of a zone showed so much earlier, it was before.
const sway = 36 * 60 * 60

// reach is the first instant at which the clock shows w or later.
func (c civil) reach(w wall) time.Time {
	for t := time.Unix(int64(w)-sway, 0).In(c.zone); ; {
		start, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// Go loses the last day of leap years from 2040 on: that zone ends where it is asked for
			end = t.Add(sway * time.Second)
		}
		_, offset := t.Zone()
		first := int64(w) - int64(offset)
		if !start.IsZero() {
			first = max(first, start.Unix())
		}
		if end.IsZero() || first < end.Unix() {
			return time.Unix(first, 0).In(c.zone)
		}
		t = end
	}
}

// shown is the latest that the clock has shown at t or before.
func (c civil) shown(t time.Time) wall {
	t = t.In(c.zone)
	oldest := t.Unix() - sway
	_, offset := t.Zone()
	w := wall(t.Unix() + int64(offset))
	for {
		start, _ := t.ZoneBounds()
		if start.IsZero() || start.Unix() < oldest {
			return w
		}
		t = start.Add(-time.Second)
		_, offset := t.Zone()
		w = max(w, wall(t.Unix()+int64(offset)))
	}
}

func (c civil) after(t time.Time) time.Time {
	w, ok := c.next(c.shown(t))
	if !ok {
		return time.Time{}
	}
	return c.reach(w)
}

func (c civil) upTo(t time.Time) time.Time {
	w, ok := c.last(c.shown(t))
	if !ok {
		return time.Time{}
	}
	return c.reach(w)
}

func (c civil) out(t time.Time) bool {
	_, offset := t.In(c.zone).Zone()
	return excluded(c.calendar.out, wall(t.Unix()+int64(offset)))
}

// count counts due times after from and up to to. Moments that the clock jumped over are due together: they count as
// one.
func (c civil) count(from, to time.Time) (kept, left int) {
	kept, left = c.calendar.count(c.shown(from), c.shown(to))
	for _, end := from.In(c.zone).ZoneBounds(); !end.IsZero() && !end.After(to); _, end = end.ZoneBounds() {
		before := c.shown(end.Add(-time.Second))
		if together, _ := c.calendar.count(before, c.shown(end)); together > 1 {
			kept -= together - 1
		}
	}
	return kept, left
}
