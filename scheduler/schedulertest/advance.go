package schedulertest

import (
	"errors"
	"time"

	"github.com/edda-go/edda/saga"
)

// mostFirings is the number of firings after which Advance fails the test, in case its manifests fire in a circle.
const mostFirings = 1_000_000

// Advance moves the clock by d while a scheduler runs, and returns the firings in order. Advance(0) fires due
// manifests.
func (s *Schedule) Advance(d time.Duration) []Firing {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("schedulertest: advance by %v: want 0 or more", d)
	}
	s.fired = nil
	end := s.table.Now.Add(d.Truncate(time.Microsecond))
	for {
		for s.table.Cycle() {
			if len(s.fired) > mostFirings {
				s.t.Fatalf("schedulertest: more than %d firings until %v: advance in smaller steps", mostFirings,
					s.table.Now)
			}
		}
		next := s.table.Upcoming()
		if next.IsZero() || next.After(end) {
			break
		}
		s.table.Now = next.In(end.Location())
	}
	s.table.Now = end
	return s.fired
}

// Down moves the clock by d while no scheduler runs. Nothing fires and nothing times out until the next Advance.
func (s *Schedule) Down(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("schedulertest: down for %v: want 0 or more", d)
	}
	s.table.Now = s.table.Now.Add(d.Truncate(time.Microsecond))
}

func (s *Schedule) send(f Firing) {
	s.fired = append(s.fired, f)
	handler := s.handlers[f.Manifest]
	if handler == nil {
		return
	}
	var permanent *saga.PermanentError
	switch err := handler(f); {
	case err == nil:
		s.Succeed(f)
	case errors.As(err, &permanent):
		s.Kill(f)
	default:
		s.Fail(f)
	}
}
