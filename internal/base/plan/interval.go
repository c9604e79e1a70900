package plan

import "time"

// interval is anchor, anchor + every, anchor + 2 × every, …: the due times of Every. Exclusions apply in UTC. It
// counts in microseconds, as Postgres stores times.
type interval struct {
	anchor, every int64
	blackouts     []blackout
}

const micros = int64(time.Second / time.Microsecond)

func newInterval(anchor time.Time, every time.Duration, out []blackout) interval {
	return interval{anchor.UnixMicro(), every.Microseconds(), out}
}

// step returns the number of the last point not after t; the anchor has the number 0.
func (i interval) step(t int64) int64 {
	k := (t - i.anchor) / i.every
	if (t-i.anchor)%i.every < 0 {
		k--
	}
	return k
}

func (i interval) point(k int64) int64 { return i.anchor + k*i.every }

func (i interval) time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// hole returns the exclusion that the point is in, in microseconds.
func (i interval) hole(us int64) (from, to int64, in bool) {
	if len(i.blackouts) == 0 {
		return 0, 0, false
	}
	d, tod := wall(time.UnixMicro(us).Unix()).split()
	h, in := holeAt(holes(i.blackouts, d), tod)
	return int64(d.at(h.from)) * micros, int64(d.at(h.to)) * micros, in
}

func (i interval) after(t time.Time) time.Time {
	at := i.point(max(i.step(t.UnixMicro())+1, 0))
	for end := at + horizon*secondsOfDay*micros; ; {
		_, to, in := i.hole(at)
		if !in {
			return i.time(at)
		}
		if at = i.point(i.step(to-1) + 1); at > end {
			return time.Time{}
		}
	}
}

func (i interval) upTo(t time.Time) time.Time {
	for at := i.point(i.step(t.UnixMicro())); at >= i.anchor; {
		from, _, in := i.hole(at)
		if !in {
			return i.time(at)
		}
		at = i.point(i.step(from - 1))
	}
	return time.Time{}
}

func (i interval) out(t time.Time) bool { return excluded(i.blackouts, wall(t.Unix())) }

func (i interval) count(from, to time.Time) (kept, left int) {
	a, b := max(from.UnixMicro(), i.anchor-1), to.UnixMicro()
	if b <= a {
		return 0, 0
	}
	all := i.step(b) - i.step(a)
	if len(i.blackouts) == 0 {
		return int(all), 0
	}
	var out int64
	first, _ := wall(time.UnixMicro(a).Unix()).split()
	last, _ := wall(time.UnixMicro(b).Unix()).split()
	for d := first; d <= last; d++ {
		for _, h := range holes(i.blackouts, d) {
			x, y := max(a, int64(d.at(h.from))*micros-1), min(b, int64(d.at(h.to))*micros-1)
			if x < y {
				out += i.step(y) - i.step(x)
			}
		}
	}
	return int(all - out), int(out)
}
