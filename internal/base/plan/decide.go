package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"sort"
	"time"
)

// Verdict is the decision about a manifest whose due time has come.
type Verdict struct {
	Fire     time.Time // the due time of the new run; zero: no run
	Next     time.Time // the due time to store; zero: never again. Under MisfireAll it may have passed, too
	Missed   int       // due times that passed and are dropped
	Excluded int       // due times that an Exclusion left out
}

// slots are the due times of a rule. No implementation iterates over all due times of a long period.
type slots interface {
	after(t time.Time) time.Time               // the first after t that is not left out, or zero
	upTo(t time.Time) time.Time                // the last not after t that is not left out, or zero
	count(from, to time.Time) (kept, left int) // after from, up to to
	out(t time.Time) bool                      // t is left out
}

// slots returns the due times of the rule. It counts Every from the anchor. It returns nil for rules without a clock.
func (p *Plan) slots(anchor time.Time) slots {
	switch p.Rule.Kind {
	case Cron:
		return wallClock{p.calendar, p.location}
	case Every:
		return newInterval(anchor, p.Rule.Every, p.out)
	case Once:
		return moment{p.Rule.At, p.out}
	}
	return nil
}

// First returns the first due time of a manifest that is declared at now, or zero if the rule has no clock. Once may
// be due in the past: then its misfire policy decides.
func (p *Plan) First(now time.Time) time.Time {
	now = Stored(now)
	switch s := p.slots(now); p.Rule.Kind {
	case Cron:
		return p.open(s.after(now))
	case Every:
		return p.open(s.after(now.Add(-time.Microsecond)))
	case Once:
		return p.open(s.after(p.Rule.At.Add(-time.Microsecond)))
	}
	return time.Time{}
}

// open returns t in the zone of the plan, or the zero time if the manifest has expired by then.
func (p *Plan) open(t time.Time) time.Time {
	if t.IsZero() || t.Year() > maxYear || !p.Expires.IsZero() && !t.Before(p.Expires) {
		return time.Time{}
	}
	return t.In(p.location)
}

// Decide decides about a manifest whose stored due is not after now. That due counts as a due time even if the rule
// no longer includes it.
func (p *Plan) Decide(due, now time.Time) Verdict {
	due, now = Stored(due), Stored(now)
	s := p.slots(due)
	switch {
	case p.open(due).IsZero():
		return Verdict{}
	case s == nil:
		return Verdict{Fire: p.open(due)}
	}
	passed := passed{slots: s, due: due, to: now}
	if !p.Expires.IsZero() && !now.Before(p.Expires) {
		passed.to = p.Expires.Add(-time.Microsecond)
	}
	if p.Misfire == MisfireAll {
		return p.decideAll(passed, now)
	}
	kept, left := passed.count()
	v := Verdict{Next: p.open(s.after(now)), Missed: kept, Excluded: left}
	if kept == 0 {
		return v
	}
	last := passed.last()
	if p.Misfire == MisfireOnce || now.Sub(last) <= p.MisfireBy {
		v.Fire, v.Missed = last.In(p.location), kept-1
	}
	return v
}

// decideAll fires the first of the due times that passed, or the first of the last MisfireUp.
func (p *Plan) decideAll(passed passed, now time.Time) Verdict {
	kept, left := passed.count()
	if kept == 0 {
		return Verdict{Next: p.open(passed.after(now)), Excluded: left}
	}
	fire := passed.first(min(kept, p.MisfireUp))
	v := Verdict{Fire: fire.In(p.location), Next: p.open(passed.after(fire)), Missed: max(kept-p.MisfireUp, 0)}
	if !v.Next.IsZero() && v.Next.Before(passed.to) {
		passed.to = v.Next
	}
	_, v.Excluded = passed.count()
	return v
}

// passed are the due times from due, itself a due time, up to to.
type passed struct {
	slots
	due, to time.Time
}

func (p passed) count() (kept, left int) {
	kept, left = p.slots.count(p.due, p.to)
	if p.out(p.due) {
		return kept, left + 1
	}
	return kept + 1, left
}

func (p passed) last() time.Time {
	if last := p.upTo(p.to); last.After(p.due) {
		return last
	}
	return p.due
}

// first returns the first of the last n due times; at least n must exist. It bisects the time between.
func (p passed) first(n int) time.Time {
	if kept, _ := p.count(); kept == n && !p.out(p.due) {
		return p.due
	}
	from := p.due.UnixMicro()
	at := sort.Search(int(p.to.UnixMicro()-from), func(i int) bool {
		kept, _ := p.slots.count(time.UnixMicro(from+int64(i)), p.to)
		return kept < n
	})
	return time.UnixMicro(from + int64(at))
}

// Jitter returns how much later than due a run begins: from 0 to the variance, both included, spread evenly. It
// depends only on the name and the due time, so every server computes the same.
func (p *Plan) Jitter(manifest string, due time.Time) time.Duration {
	if p.Variance < time.Microsecond {
		return 0
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(manifest), uint64(due.UnixMicro())))
	return time.Duration(binary.BigEndian.Uint64(sum[:])%uint64(p.Variance.Microseconds()+1)) * time.Microsecond
}
