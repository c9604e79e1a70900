package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/edda-go/edda/internal/pgdev/faultproxy"
)

// slot is the place of one worker process at a time, behind a proxy of its own. The proxy is how a fault
// knows which process it strikes. The methods are called by one goroutine, but kill also by a fault.
type slot struct {
	lab   *lab
	proxy *faultproxy.Proxy
	no    int

	mu    sync.Mutex // guards all below
	lives int
	now   *process
}

// process is one worker's process.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	killed  bool // by us; guarded by slot.mu
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
	spec, err := json.Marshal(worker{Name: name, DSN: s.proxy.DSN(s.lab.server.DSN()), Workload: s.lab.workload})
	if err != nil {
		return fmt.Errorf("describe worker %s: %w", name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	p := &process{name: name, command: exec.Command(program), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), workerVariable+"="+string(spec))
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return fmt.Errorf("start worker %s: %w", name, err)
	}
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return fmt.Errorf("start worker %s: %w", name, err)
	}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start worker %s: %w", name, err)
	}
	s.now = p
	go s.follow(p, stderr)
	return nil
}

// follow reads what a worker says until it ends. One that was not killed must not end.
func (s *slot) follow(p *process, stderr io.Reader) {
	var last []string
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.lab.heard(p.name, lines.Text())
		last = append(last[max(0, len(last)-19):], lines.Text())
	}
	err := p.command.Wait()
	s.mu.Lock()
	killed := p.killed
	s.now = nil
	s.mu.Unlock()
	if !killed {
		s.lab.violate(violation{rule: "ended", id: p.name, what: fmt.Sprintf("worker %s ended by itself: %v\n    %s", p.name, err, strings.Join(last, "\n    "))})
	}
	close(p.ended)
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
	p := s.now
	if p == nil || p.killed {
		s.mu.Unlock()
		return false, false
	}
	_ = p.command.Process.Signal(syscall.SIGSTOP) // it may have ended a moment ago
	n, err := number(ctx, s.lab.pool, "crash_in_flight", p.name)
	inFlight = err == nil && n > 0
	if why == onlyInFlight && !inFlight {
		_ = p.command.Process.Signal(syscall.SIGCONT)
		s.mu.Unlock()
		return false, false
	}
	p.killed = true
	_ = p.command.Process.Kill()
	s.mu.Unlock()
	<-p.ended
	_, _ = s.lab.pool.Exec(ctx, statements.Get("crash_death"), p.name, string(why)) // for the story only
	return true, inFlight
}

// stop ends the worker for good.
func (s *slot) stop(ctx context.Context) {
	s.kill(ctx, retired)
	_ = s.proxy.Close()
}
