package scheduler

import "time"

// grid is anchor, anchor + every, anchor + 2 × every, …: the due times of Every. Exclusions are looked at in UTC. It
// counts in microseconds, as Postgres stores times.
type grid struct {
	anchor, every int64
	blackouts     []blackout
}

const micros = int64(time.Second / time.Microsecond)

func newGrid(anchor time.Time, every time.Duration, out []blackout) grid {
	return grid{anchor.UnixMicro(), every.Microseconds(), out}
}

// step is the number of the last point not after t; the anchor has the number 0.
func (g grid) step(t int64) int64 {
	k := (t - g.anchor) / g.every
	if (t-g.anchor)%g.every < 0 {
		k--
	}
	return k
}

func (g grid) point(k int64) int64 { return g.anchor + k*g.every }

func (g grid) time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// hole is the exclusion that the point is in, in microseconds.
func (g grid) hole(us int64) (from, to int64, in bool) {
	if len(g.blackouts) == 0 {
		return 0, 0, false
	}
	d, tod := wall(time.UnixMicro(us).Unix()).split()
	h, in := holeAt(holes(g.blackouts, d), tod)
	return int64(d.at(h.from)) * micros, int64(d.at(h.to)) * micros, in
}

func (g grid) after(t time.Time) time.Time {
	at := g.point(max(g.step(t.UnixMicro())+1, 0))
	for end := at + horizon*secondsOfDay*micros; ; {
		_, to, in := g.hole(at)
		if !in {
			return g.time(at)
		}
		if at = g.point(g.step(to-1) + 1); at > end {
			return time.Time{}
		}
	}
}

func (g grid) upTo(t time.Time) time.Time {
	for at := g.point(g.step(t.UnixMicro())); at >= g.anchor; {
		from, _, in := g.hole(at)
		if !in {
			return g.time(at)
		}
		at = g.point(g.step(from - 1))
	}
	return time.Time{}
}

func (g grid) out(t time.Time) bool { return excluded(g.blackouts, wall(t.Unix())) }

func (g grid) count(from, to time.Time) (kept, left int) {
	a, b := max(from.UnixMicro(), g.anchor-1), to.UnixMicro()
	if b <= a {
		return 0, 0
	}
	all := g.step(b) - g.step(a)
	if len(g.blackouts) == 0 {
		return int(all), 0
	}
	var out int64
	first, _ := wall(time.UnixMicro(a).Unix()).split()
	last, _ := wall(time.UnixMicro(b).Unix()).split()
	for d := first; d <= last; d++ {
		for _, h := range holes(g.blackouts, d) {
			x, y := max(a, int64(d.at(h.from))*micros-1), min(b, int64(d.at(h.to))*micros-1)
			if x < y {
				out += g.step(y) - g.step(x)
			}
		}
	}
	return int(all - out), int(out)
}
