package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/saga"
)

// Errand is the message that has nothing to do with the hot saga.
type Errand struct{ For int }

// Kind names the message.
func (Errand) Kind() string { return "errand.run" }

// Errands is the state of the other saga of the endpoint: how many errands a person ran.
type Errands struct{ Run int }

const people = 50 // instances of the saga that take the errands in turn

func errands(store saga.Store, name string) *saga.Definition {
	return saga.Define(name, saga.Options{Store: store},
		saga.StartedBy(func(m Errand) string { return strconv.Itoa(m.For) },
			func(e *Errands, _ *saga.Context, _ Errand) error { e.Run++; return nil }))
}

// stopwatch collects the critical times of errands. Safe for concurrent use: workers emit at the same time.
type stopwatch struct {
	mu sync.Mutex // guards the fields below
	lap
}

// lap holds the critical times of a period: of the errands of the endpoint with the hot saga, and of the errands of a
// second endpoint. The latter show the cost of the busy machine alone.
type lap struct{ here, elsewhere []time.Duration }

func (l *lap) add(other lap) {
	l.here, l.elsewhere = append(l.here, other.here...), append(l.elsewhere, other.elsewhere...)
}

// observe is the bus.Options.Events of the servers.
func (s *stopwatch) observe(e event.Event) {
	if h, ok := e.(event.Handled); ok && h.Info.Kind == (Errand{}).Kind() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.Endpoint == "desk" {
			s.here = append(s.here, h.Critical)
		} else {
			s.elsewhere = append(s.elsewhere, h.Critical)
		}
	}
}

// take returns the times since the last take.
func (s *stopwatch) take() lap {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := s.lap
	s.lap = lap{}
	return times
}

func (s *stopwatch) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.here) + len(s.elsewhere)
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	times = slices.Sorted(slices.Values(times))
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

// sendErrands sends perSecond errands a second to each of the two endpoints, in turn, until ctx ends, and returns how
// many it sent.
func sendErrands(ctx context.Context, b *bus.Bus, perSecond int) (sent int, err error) {
	begun := time.Now()
	for {
		next := begun.Add(time.Duration(sent) * time.Second / time.Duration(2*perSecond))
		if run.Sleep(ctx, time.Until(next)) != nil {
			return sent, nil
		}
		to := [2]string{"desk", "elsewhere"}[sent%2]
		if _, err := b.Send(context.WithoutCancel(ctx), Errand{For: sent % people}, saga.To(to)); err != nil {
			return sent, err
		}
		sent++
	}
}
