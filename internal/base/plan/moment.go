package plan

import "time"

// moment is the one due time of Once. Exclusions apply in UTC.
type moment struct {
	at        time.Time
	blackouts []blackout
}

func (m moment) out(t time.Time) bool { return excluded(m.blackouts, wall(t.Unix())) }

func (m moment) after(t time.Time) time.Time {
	if m.at.After(t) && !m.out(m.at) {
		return m.at
	}
	return time.Time{}
}

func (m moment) upTo(t time.Time) time.Time {
	if !m.at.After(t) && !m.out(m.at) {
		return m.at
	}
	return time.Time{}
}

func (m moment) count(from, to time.Time) (kept, left int) {
	switch {
	case !m.at.After(from) || m.at.After(to):
		return 0, 0
	case m.out(m.at):
		return 0, 1
	}
	return 1, 0
}
