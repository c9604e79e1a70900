package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/edda-go/edda/internal/pgdev/faultproxy"
	"github.com/edda-go/edda/internal/procs"
)

// slot is the place of one worker process at a time, behind a proxy of its own. The proxy is how a fault
// knows which process it strikes. The methods are called by one goroutine, but kill also by a fault.
type slot struct {
	lab   *lab
	proxy *faultproxy.Proxy
	no    int

	mu    sync.Mutex // guards all below
	lives int
	now   *procs.Process
}

func newSlot(ctx context.Context, l *lab, no int) (*slot, error) {
	backend, err := faultproxy.Backend(l.server.DSN())
	if err != nil {
		return nil, err
	}
	proxy, err := faultproxy.Listen(ctx, backend, faultproxy.Options{Seed: l.seed + uint64(no)})
	if err != nil {
		return nil, err
	}
	return &slot{lab: l, proxy: proxy, no: no}, nil
}

// ensure starts a worker unless one is running.
func (s *slot) ensure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		return nil
	}
	s.lives++
	name := fmt.Sprintf("crash-%d-%d", s.no, s.lives)
	p, err := procs.Start(procs.Job{
		Name: name, Variable: workerVariable,
		Task:   worker{Name: name, DSN: s.proxy.DSN(s.lab.server.DSN()), Workload: s.lab.workload},
		Stderr: procs.Lines(func(line string) { s.lab.heard(name, line) }),
	})
	if err != nil {
		return err
	}
	s.now = p
	s.lab.followers.Go(func() { s.follow(p) })
	return nil
}

// follow waits for a worker's end. One that was not killed must not end.
func (s *slot) follow(p *procs.Process) {
	if err := p.End(); err != nil {
		s.lab.violate(violation{rule: "ended", id: p.Name, what: err.Error()})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == p {
		s.now = nil
	}
}

// reason says why a worker is killed; it is part of the story of what goes wrong.
type reason string

const (
	onlyInFlight reason = "at a random moment" // and only if it has an open batch
	retired      reason = "because the phase is over"
)

// kill freezes the worker, looks whether it has an open batch, and kills it.
func (s *slot) kill(ctx context.Context, why reason) (killed, inFlight bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now
	if p == nil {
		return false, false
	}
	p.Freeze()
	n, err := number(ctx, s.lab.pool, "crash_in_flight", p.Name)
	inFlight = err == nil && n > 0
	if why == onlyInFlight && !inFlight {
		p.Thaw()
		return false, false
	}
	p.Kill()
	s.now = nil
	_, _ = s.lab.pool.Exec(ctx, statements.Get("crash_death"), p.Name, string(why)) // for the story only
	return true, inFlight
}

// stop ends the worker for good.
func (s *slot) stop(ctx context.Context) {
	s.kill(ctx, retired)
	_ = s.proxy.Close()
}
