package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

// Errands is the state of the other saga of the endpoint: how many errands somebody ran.
type Errands struct{ Run int }

const people = 50 // errands are for so many, in turn

func errands(store saga.Store) *saga.Definition {
	return saga.Define("errand", saga.Options{Store: store},
		saga.StartedBy(func(m Errand) string { return strconv.Itoa(m.For) },
			func(e *Errands, _ *saga.Context, _ Errand) error { e.Run++; return nil }))
}

// stopwatch collects the critical times of errands. Safe for concurrent use: workers emit at the same time.
type stopwatch struct {
	mu    sync.Mutex // guards what follows
	times []time.Duration
}

// observe is the bus.Options.Events of the servers.
func (s *stopwatch) observe(e bus.Event) {
	if h, ok := e.(bus.Handled); ok && h.Saga == "errand" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.times = append(s.times, h.Critical)
	}
}

// lap returns the times since the last lap.
func (s *stopwatch) lap() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := s.times
	s.times = nil
	return times
}

func (s *stopwatch) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	times = slices.Sorted(slices.Values(times))
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

// sendErrands sends so many a second until ctx ends, and returns how many it sent.
func sendErrands(ctx context.Context, b *bus.Bus, perSecond int) (sent int, err error) {
	begun := time.Now()
	for {
		next := begun.Add(time.Duration(sent) * time.Second / time.Duration(perSecond))
		if run.Sleep(ctx, time.Until(next)) != nil {
			return sent, nil
		}
		if _, err := b.Send(context.WithoutCancel(ctx), Errand{For: sent % people}); err != nil {
			return sent, err
		}
		sent++
	}
}
