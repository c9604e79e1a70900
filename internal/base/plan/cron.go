package plan

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// parser reads five fields, or six with the seconds first, and names like @daily. Nothing else of robfig/cron is
// used: its search for the next time loses days around changes of the clock, so Edda has its own calendar and
// wallClock.
var parser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

const maxExpr = 255

func parseCron(expr string) (*calendar, error) {
	fields := strings.Fields(expr)
	switch {
	case len(fields) == 0:
		return nil, errors.New("expression is empty")
	case len(expr) > maxExpr:
		return nil, fmt.Errorf("expression of %d bytes: at most %d", len(expr), maxExpr)
	case strings.Contains(fields[0], "TZ="):
		return nil, errors.New("expression names a zone: the zone is the second parameter of Cron")
	case strings.HasPrefix(fields[0], "@every"):
		return nil, errors.New("expression is @every: use Every, which counts by elapsed time")
	case len(fields) == 7:
		return nil, errors.New("expression has 7 fields: want 5, or 6 with the seconds first; there is no field " +
			"for years")
	}
	for _, field := range fields {
		// The parser drops an empty element, and takes a list without elements for the first value.
		if slices.Contains(strings.Split(field, ","), "") {
			return nil, fmt.Errorf("expression %q: the field %q has an empty element of a list: want a value before "+
				"and after each comma", expr, field)
		}
	}
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", expr, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("expression %q names no times of a day", expr)
	}
	c := newCalendar(spec)
	if _, ok := c.next(dayOf(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).at(0)); !ok {
		return nil, fmt.Errorf("expression %q never fires", expr)
	}
	return c, nil
}

// calendar is a set of times of a wall clock, without a zone. Times in a blackout are left out.
type calendar struct {
	second, minute, hour, dom, month, dow uint64
	eitherDay                             bool // day of month or weekday is enough: both were restricted
	out                                   []blackout
}

const star = 1 << 63 // robfig/cron's mark for a field that is *

func newCalendar(s *cron.SpecSchedule) *calendar {
	return &calendar{
		second: s.Second &^ star, minute: s.Minute &^ star, hour: s.Hour &^ star,
		dom: s.Dom &^ star, month: s.Month &^ star, dow: s.Dow &^ star,
		eitherDay: s.Dom&star == 0 && s.Dow&star == 0,
	}
}

// horizon bounds each search: the longest wait is from one 29 February to the next over a year that is divisible by
// 100.
const horizon = 9 * 366

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// on reports whether the day belongs to the calendar. t is its midnight.
func (c *calendar) on(t time.Time) bool {
	if !has(c.month, int(t.Month())) {
		return false
	}
	dom, dow := has(c.dom, t.Day()), has(c.dow, int(t.Weekday()))
	if c.eitherDay {
		return dom || dow
	}
	return dom && dow
}

// next returns the first time after w, within the horizon.
func (c *calendar) next(w wall) (wall, bool) {
	d, tod := (w + 1).split()
	for end := d + horizon; d < end; tod = 0 {
		t := d.time()
		if !has(c.month, int(t.Month())) {
			d = dayOf(t.AddDate(0, 1, 1-t.Day()))
			continue
		}
		if c.on(t) {
			if at, ok := c.nextOfDay(d, tod); ok {
				return d.at(at), true
			}
		}
		d++
	}
	return 0, false
}

// last returns the last time not after w, within the horizon.
func (c *calendar) last(w wall) (wall, bool) {
	d, tod := w.split()
	for end := d - horizon; d > end; tod = secondsOfDay - 1 {
		t := d.time()
		if !has(c.month, int(t.Month())) {
			d -= day(t.Day())
			continue
		}
		if c.on(t) {
			if at, ok := c.lastOfDay(d, tod); ok {
				return d.at(at), true
			}
		}
		d--
	}
	return 0, false
}

func (c *calendar) holes(d day) []span {
	if len(c.out) == 0 {
		return nil
	}
	return holes(c.out, d)
}

func (c *calendar) nextOfDay(d day, tod int) (int, bool) {
	holes := c.holes(d)
	for {
		at, ok := c.ceil(tod)
		if !ok {
			return 0, false
		}
		hole, in := holeAt(holes, at)
		if !in {
			return at, true
		}
		tod = hole.to
	}
}

func (c *calendar) lastOfDay(d day, tod int) (int, bool) {
	holes := c.holes(d)
	for {
		at, ok := c.floor(tod)
		if !ok {
			return 0, false
		}
		hole, in := holeAt(holes, at)
		if !in {
			return at, true
		}
		tod = hole.from - 1
	}
}

// above returns the first member of set from n on, below the last one up to n; -1 means that there is no such member.
func above(set uint64, n int) int {
	if rest := set >> n << n; n < 64 && rest != 0 {
		return bits.TrailingZeros64(rest)
	}
	return -1
}

func below(set uint64, n int) int {
	if n < 0 {
		return -1
	}
	return bits.Len64(set&(1<<(n+1)-1)) - 1
}

// ceil returns the first time of day from tod on, floor the last one up to it.
func (c *calendar) ceil(tod int) (int, bool) {
	h, m, s := tod/3600, tod/60%60, tod%60
	first := bits.TrailingZeros64(c.second)
	if h < 24 && has(c.hour, h) {
		if has(c.minute, m) {
			if at := above(c.second, s); at >= 0 {
				return h*3600 + m*60 + at, true
			}
		}
		if at := above(c.minute, m+1); at >= 0 {
			return h*3600 + at*60 + first, true
		}
	}
	if at := above(c.hour, h+1); at >= 0 {
		return at*3600 + bits.TrailingZeros64(c.minute)*60 + first, true
	}
	return 0, false
}

func (c *calendar) floor(tod int) (int, bool) {
	if tod < 0 {
		return 0, false
	}
	h, m, s := tod/3600, tod/60%60, tod%60
	last := bits.Len64(c.second) - 1
	if has(c.hour, h) {
		if has(c.minute, m) {
			if at := below(c.second, s); at >= 0 {
				return h*3600 + m*60 + at, true
			}
		}
		if at := below(c.minute, m-1); at >= 0 {
			return h*3600 + at*60 + last, true
		}
	}
	if at := below(c.hour, h-1); at >= 0 {
		return at*3600 + (bits.Len64(c.minute)-1)*60 + last, true
	}
	return 0, false
}

// rank counts the times of day before tod.
func (c *calendar) rank(tod int) int {
	under := func(set uint64, n int) int { return bits.OnesCount64(set & (1<<n - 1)) }
	h, m, s := tod/3600, tod/60%60, tod%60
	perMinute := bits.OnesCount64(c.second)
	n := under(c.hour, h) * bits.OnesCount64(c.minute) * perMinute
	if has(c.hour, h) {
		n += under(c.minute, m) * perMinute
		if has(c.minute, m) {
			n += under(c.second, s)
		}
	}
	return n
}

// count counts the times after from and up to to: kept ones, and ones left out. Its loop visits days, never single
// times.
func (c *calendar) count(from, to wall) (kept, left int) {
	if to <= from {
		return 0, 0
	}
	d, tod := (from + 1).split()
	end, endTod := (to + 1).split()
	for ; d <= end; d, tod = d+1, 0 {
		if !c.on(d.time()) {
			continue
		}
		until := secondsOfDay
		if d == end {
			until = endTod
		}
		all, out := c.rank(until)-c.rank(tod), 0
		for _, h := range c.holes(d) {
			if a, b := max(h.from, tod), min(h.to, until); a < b {
				out += c.rank(b) - c.rank(a)
			}
		}
		kept, left = kept+all-out, left+out
	}
	return kept, left
}
