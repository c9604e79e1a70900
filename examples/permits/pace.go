package main

import "time"

// pace turns times of the log into times of the run: from the first event to the last takes Lasting.
type pace struct {
	Begun       time.Time // by the database's clock
	Lasting     time.Duration
	First, Last time.Time // of the log
}

// at is when what stands at t in the log happens in the run. What lies before the first event is due at once; what
// lies after the last one is brought to the end of the run, since nobody wants to wait for the deadline of next year.
func (p pace) at(t time.Time) time.Time {
	if t.Before(p.First) {
		t = p.First
	} else if t.After(p.Last) {
		t = p.Last
	}
	whole := p.Last.Sub(p.First)
	if whole <= 0 {
		return p.Begun
	}
	part := time.Duration(float64(p.Lasting) * (float64(t.Sub(p.First)) / float64(whole)))
	return p.Begun.Add(part).Truncate(time.Microsecond)
}
