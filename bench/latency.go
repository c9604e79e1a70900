package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// latencyGap is the mean time between two messages of the latency workload: about 200 a second, a system at rest.
const latencyGap = 5 * time.Millisecond

// warmUp is the part of the messages that only fill caches and are not measured: one in warmUp.
const warmUp = 20

// stopwatch measures from the call of Send to the call of the handler, inside one process.
type stopwatch struct {
	mu        sync.Mutex // guards the fields below
	sent      []time.Time
	latencies []time.Duration // by Charge.Seq; zero is not handled
	handled   int
	done      chan struct{} // closed once every message was handled
}

// newStopwatch is for n messages.
func newStopwatch(n int) *stopwatch {
	return &stopwatch{sent: make([]time.Time, n), latencies: make([]time.Duration, n), done: make(chan struct{})}
}

// SendAll passes the messages of the case to send, in order, with uneven gaps around
// latencyGap: a peer that polls must not be lucky with its phase.
func (w *Worker) SendAll(ctx context.Context, send func(context.Context, Charge) error) error {
	random := rand.New(rand.NewPCG(3, 4))
	for m := range w.Charges() {
		gap := latencyGap/2 + time.Duration(random.Int64N(int64(latencyGap)))
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.watch.start(m)
		if err := send(ctx, m); err != nil {
			return fmt.Errorf("send message %d: %w", m.Seq, err)
		}
	}
	return nil
}

// Handled stops the watch for a message; the peer's handler calls it first of all. A second call for
// a message is an error: nothing here may be handled twice.
func (w *Worker) Handled(m Charge) error {
	return w.watch.stop(m, time.Now())
}

// AllHandled is closed once every message was handled.
func (w *Worker) AllHandled() <-chan struct{} { return w.watch.done }

func (s *stopwatch) start(m Charge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[m.Seq] = time.Now()
}

func (s *stopwatch) stop(m Charge, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latencies[m.Seq] != 0 {
		return fmt.Errorf("message %d was handled twice", m.Seq)
	}
	s.latencies[m.Seq] = now.Sub(s.sent[m.Seq])
	s.handled++
	if s.handled == len(s.sent) {
		close(s.done)
	}
	return nil
}

// measured returns the latencies after the warm-up. It fails if a message was never handled.
func (s *stopwatch) measured() ([]time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled != len(s.sent) {
		return nil, fmt.Errorf("%d of %d messages were handled", s.handled, len(s.sent))
	}
	return s.latencies[len(s.latencies)/warmUp:], nil
}
