package plan

import "time"

// wallClock is a calendar in a zone: the due times of Cron. A time of the calendar is due when the clock of the zone
// first shows it or a later one.
type wallClock struct {
	*calendar
	zone *time.Location
}

// widest is more than the difference of any two offsets from UTC, in seconds.
const widest = 36 * 60 * 60

// firstShows returns the first instant when the clock shows w or later.
func (c wallClock) firstShows(w wall) time.Time {
	for t := time.Unix(int64(w)-widest, 0).In(c.zone); ; {
		start, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// Go has an error on the last day of leap years from 2040 on: the zone ends at the queried time
			end = t.Add(widest * time.Second)
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

// latest returns the latest time that the clock has shown at t or before.
func (c wallClock) latest(t time.Time) wall {
	t = t.In(c.zone)
	oldest := t.Unix() - widest
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

func (c wallClock) after(t time.Time) time.Time {
	w, ok := c.next(c.latest(t))
	if !ok {
		return time.Time{}
	}
	return c.firstShows(w)
}

func (c wallClock) upTo(t time.Time) time.Time {
	w, ok := c.last(c.latest(t))
	if !ok {
		return time.Time{}
	}
	return c.firstShows(w)
}

func (c wallClock) out(t time.Time) bool {
	_, offset := t.In(c.zone).Zone()
	return excluded(c.calendar.out, wall(t.Unix()+int64(offset)))
}

// count counts due times after from and up to to. Times that the clock skipped are due together: they count as one.
func (c wallClock) count(from, to time.Time) (kept, left int) {
	kept, left = c.calendar.count(c.latest(from), c.latest(to))
	for _, end := from.In(c.zone).ZoneBounds(); !end.IsZero() && !end.After(to); _, end = end.ZoneBounds() {
		before := c.latest(end.Add(-time.Second))
		if together, _ := c.calendar.count(before, c.latest(end)); together > 1 {
			kept -= together - 1
		}
	}
	return kept, left
}
