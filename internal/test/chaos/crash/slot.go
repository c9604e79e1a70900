package crash

import (
	"context"
	"fmt"
	"sync"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/procs"
)

// slot is the place of one worker process at a time, behind a proxy of its own. The proxy is how a fault
// knows which process it strikes. The methods are called by one goroutine; a fault may call kill as well.
type slot struct {
	arena *arena
	proxy *faultproxy.Proxy
	no    int

	mu    sync.Mutex // guards all below
	lives int
	now   *procs.Process
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
	job := s.arena.Job(name, s.proxy.DSN(s.arena.Server.DSN()), worker{Workload: s.arena.workload})
	p, err := procs.Start(job)
	if err != nil {
		return err
	}
	s.now = p
	s.arena.followers.Go(func() { s.follow(p) })
	return nil
}

// follow waits for a worker's end. A worker that was not killed must not end.
func (s *slot) follow(p *procs.Process) {
	if err := p.End(); err != nil {
		s.arena.Violate("ended", p.Name, "%v", err)
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
	n, err := s.arena.number(ctx, "crash_in_flight", p.Name)
	inFlight = err == nil && n > 0
	if why == onlyInFlight && !inFlight {
		p.Thaw()
		return false, false
	}
	p.Kill()
	s.now = nil
	_ = s.arena.Record(ctx, string(why), p.Name) // for the story only
	return true, inFlight
}

// stop ends the worker for good.
func (s *slot) stop(ctx context.Context) {
	s.kill(ctx, retired)
	_ = s.proxy.Close()
}
