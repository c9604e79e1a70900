package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naive visits each due time, and decides only by the docstrings.
func naive(p *Plan, due, now time.Time) Verdict {
	s := p.slots(due)
	var kept []time.Time
	left := 0
	expired := func(t time.Time) bool { return !p.Expires.IsZero() && !t.Before(p.Expires) }
	all := everything(p, due, now)
	for _, t := range all {
		switch {
		case expired(t):
		case s.out(t):
			left++
		default:
			kept = append(kept, t)
		}
	}
	v := Verdict{Next: p.open(s.after(now)), Missed: len(kept), Excluded: left}
	switch {
	case expired(due):
		return Verdict{}
	case len(kept) == 0:
		return v
	case p.Misfire == MisfireAll:
		up := kept[max(len(kept)-p.MisfireUp, 0):]
		v = Verdict{Fire: up[0], Next: v.Next, Missed: len(kept) - len(up)}
		if len(up) > 1 {
			v.Next = up[1]
		}
		for _, t := range all {
			if !expired(t) && s.out(t) && (v.Next.IsZero() || t.Before(v.Next)) {
				v.Excluded++
			}
		}
		return v
	case p.Misfire == MisfireOnce || now.Sub(kept[len(kept)-1]) <= p.MisfireBy:
		v.Fire, v.Missed = kept[len(kept)-1], len(kept)-1
	}
	return v
}

// everything returns due and the rule's later due times up to now, without exclusions.
func everything(p *Plan, due, now time.Time) []time.Time {
	bare := *p
	bare.out = nil
	if p.calendar != nil {
		c := *p.calendar
		c.out = nil
		bare.calendar = &c
	}
	all := []time.Time{due}
	for s := bare.slots(due); ; {
		next := s.after(all[len(all)-1])
		if next.IsZero() || next.After(now) {
			return all
		}
		all = append(all, next)
	}
}

// In zones that change their clock in the windows below, an excluded time could share its instant with a kept one;
// decide and the walk count that differently. TestCronEvaluations covers such zones.
func TestDecideAgainstAWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
		m := Definition{Misfire: Misfire(d.IntN(3)), MisfireUp: d.IntN(20)}
		due := at("2026-05-01T00:00:00Z").Add(time.Duration(d.IntN(86400*1000)) * time.Millisecond)
		if d.IntN(2) == 0 {
			m.Rule = every(time.Duration(1000+d.IntN(7_200_000)) * time.Millisecond)
		} else {
			m.Rule = cronRule(d.expression(false).expr, "Asia/Kathmandu")
		}
		for range max(d.IntN(5)-2, 0) {
			m.Exclude = append(m.Exclude, d.exclusion())
		}
		now := due.Add(time.Duration(d.IntN(1+d.IntN(10_000_000))) * time.Millisecond)
		if d.IntN(4) == 0 {
			m.Expires = due.Add(time.Duration(d.IntN(10_000_000)-1000) * time.Millisecond)
		}
		if d.IntN(2) == 0 {
			m.MisfireBy = time.Duration(d.IntN(3600)) * time.Second
		}
		p, err := m.Compile()
		if err != nil {
			return // never fires
		}
		if first := p.slots(due).after(due.Add(-time.Hour)); d.IntN(3) > 0 && !first.IsZero() && first.Before(now) {
			due = first
		}
		if diff := cmp.Diff(naive(p, due, now).told(), p.Decide(due, now).told()); diff != "" {
			t.Errorf("%+v\ndue %v, now %v:\n%s", m, due, now, diff)
		}
	})
}

func TestCalendarAgainstDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))}
		o := d.expression(false)
		for _, field := range []int{1, 2} {
			o.fields[field] = make([]bool, 64)
			o.fields[field][7] = true
		}
		c := &calendar{second: 1, minute: 1 << 7, hour: 1 << 7, eitherDay: o.either}
		for field, into := range map[int]*uint64{3: &c.dom, 4: &c.month, 5: &c.dow} {
			for n, in := range o.fields[field] {
				if in {
					*into |= 1 << n
				}
			}
		}
		start := dayOf(at("1996-01-01T00:00:00Z")) + day(d.IntN(200*366))
		want, found := start, false
		for ; !found && want < start+horizon; want++ {
			found = o.names(want.time().Add(7*time.Hour + 7*time.Minute))
		}
		got, ok := c.next(start.at(7*3600 + 7*60 - 1))
		if ok != found || ok && got != (want-1).at(7*3600+7*60) {
			t.Fatalf("%s after %v: got %v %v, want %v %v", o.expr, start.time(), got, ok, (want - 1).time(), found)
		}
		if !ok {
			return
		}
		if back, ok := c.last(got); !ok || back != got {
			t.Fatalf("%s: the last up to its own moment is another", o.expr)
		}
		if back, ok := c.last(got - 1); ok && back >= start.at(7*3600+7*60) {
			t.Fatalf("%s: there is one between: %v", o.expr, back)
		}
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	p := compiled(t, Definition{Rule: every(time.Second), Variance: 100 * time.Millisecond})
	due := at("2026-03-01T10:00:00Z")
	// Servers of two releases must compute the same.
	if got, want := p.Jitter("report", due), 50405*time.Microsecond; got != want {
		t.Errorf("jitter: got %v, want %v", got, want)
	}
	var tenths [10]int
	for i := range 10_000 {
		j := p.Jitter("report", due.Add(time.Duration(i)*time.Second))
		if j < 0 || j > p.Variance {
			t.Fatalf("jitter of %v: want 0 to %v", j, p.Variance)
		}
		tenths[min(int(j/(10*time.Millisecond)), 9)]++
	}
	if slices.Min(tenths[:]) < 850 || slices.Max(tenths[:]) > 1150 {
		t.Errorf("10,000 runs are spread over ten parts of the variance like %v", tenths)
	}
	if j := compiled(t, Definition{Rule: every(time.Second)}).Jitter("report", due); j != 0 {
		t.Errorf("without a variance: %v", j)
	}
}
