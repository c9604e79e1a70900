package plan

import (
	"fmt"
	"slices"
	"time"
)

const secondsOfDay = 24 * 60 * 60

// wall is the time of a wall clock: date and time of day, in seconds as though its zone were UTC.
type wall int64

// day is a date: days since the first of 1970.
type day int64

func (w wall) split() (d day, tod int) {
	d = day(w / secondsOfDay)
	if tod = int(w % secondsOfDay); tod < 0 {
		return d - 1, tod + secondsOfDay
	}
	return d, tod
}

func (d day) at(tod int) wall { return wall(d)*secondsOfDay + wall(tod) }

func (d day) time() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

func dayOf(t time.Time) day {
	year, month, dom := t.Date()
	return day(time.Date(year, month, dom, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay)
}

// Exclusion leaves due times out. Dates are written as 2006-01-02, times of day as 15:04:05.
type Exclusion struct {
	Days  []time.Weekday `json:"days,omitempty"`
	From  string         `json:"from,omitempty"`
	To    string         `json:"to,omitempty"`
	Start string         `json:"start,omitempty"` // both or neither
	End   string         `json:"end,omitempty"`
}

// blackout is a compiled Exclusion. A part of the day over midnight belongs to the day of its start.
type blackout struct {
	days       uint8 // a bit for each weekday
	from, to   day
	start, end int
}

const allDays, firstDay, lastDay = 1<<7 - 1, day(-1 << 40), day(1 << 40)

func (e Exclusion) compile() (blackout, error) {
	b := blackout{days: allDays, from: firstDay, to: lastDay}
	if len(e.Days) == 0 && e.From == "" && e.To == "" && e.Start == "" {
		return b, fmt.Errorf("it is empty and would leave everything out: set Days, From, To or Of")
	}
	if len(e.Days) > 0 {
		b.days = 0
	}
	for _, d := range e.Days {
		if d < time.Sunday || d > time.Saturday {
			return b, fmt.Errorf("Days: %d: want 0 (Sunday) to 6 (Saturday)", d)
		}
		b.days |= 1 << d
	}
	if err := readDates(e, &b); err != nil {
		return b, err
	}
	return b, readWindow(e, &b)
}

func readDates(e Exclusion, b *blackout) error {
	for _, f := range []struct {
		name, text string
		into       *day
	}{{"From", e.From, &b.from}, {"To", e.To, &b.to}} {
		if f.text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, f.text)
		if err != nil {
			return fmt.Errorf("%s: want a date of the years 1 to 9999", f.name)
		}
		*f.into = dayOf(t)
	}
	if b.to < b.from {
		return fmt.Errorf("To is before From: %s, %s", e.To, e.From)
	}
	return nil
}

func readWindow(e Exclusion, b *blackout) error {
	if e.Start == "" && e.End == "" {
		b.end = secondsOfDay
		return nil
	}
	for _, f := range []struct {
		name, text string
		into       *int
	}{{"Of.Start", e.Start, &b.start}, {"Of.End", e.End, &b.end}} {
		t, err := time.Parse(time.TimeOnly, f.text)
		if err != nil {
			return fmt.Errorf("%s: want a time of day from 00:00:00 to 23:59:59", f.name)
		}
		*f.into = t.Hour()*3600 + t.Minute()*60 + t.Second()
	}
	return nil
}

func (b blackout) on(d day) bool {
	weekday := (int64(d)%7 + 4 + 7) % 7 // the first of 1970 was a Thursday
	return b.days&(1<<weekday) != 0 && b.from <= d && d <= b.to
}

// span is a part of a day in seconds: from until before to.
type span struct{ from, to int }

// holes returns the excluded parts of d, in order and without overlaps.
func holes(blackouts []blackout, d day) []span {
	var all []span
	for _, b := range blackouts {
		overnight := b.end <= b.start
		if b.on(d) {
			end := b.end
			if overnight {
				end = secondsOfDay
			}
			all = append(all, span{b.start, end})
		}
		if overnight && b.end > 0 && b.on(d-1) {
			all = append(all, span{0, b.end})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// holeAt returns the hole that tod is in.
func holeAt(holes []span, tod int) (span, bool) {
	for _, h := range holes {
		if h.from <= tod && tod < h.to {
			return h, true
		}
	}
	return span{}, false
}

// excluded reports whether a wall clock that shows w is in an exclusion.
func excluded(blackouts []blackout, w wall) bool {
	if len(blackouts) == 0 {
		return false
	}
	d, tod := w.split()
	_, in := holeAt(holes(blackouts, d), tod)
	return in
}
