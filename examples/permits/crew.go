package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/edda-go/edda/internal/run"
)

// crew is the worker processes. Each has a place, and whoever is killed is replaced at once.
type crew struct {
	spec worker

	mu  sync.Mutex // guards now
	now []*process // by place; nil while nobody is there
}

// process is one worker.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	says    tail
	ended   chan struct{}

	mu     sync.Mutex // guards killed
	killed bool       // by us
}

func newCrew(spec worker, places int) *crew {
	return &crew{spec: spec, now: make([]*process, places)}
}

// run keeps every place filled until ctx ends, and then lets the workers finish what they have in hand.
func (c *crew) run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	for place := range c.now {
		all.Go(func(ctx context.Context) error { return c.keep(ctx, place) })
	}
	return all.Wait()
}

func (c *crew) keep(ctx context.Context, place int) error {
	for life := 1; ctx.Err() == nil; life++ {
		p, err := c.start(fmt.Sprintf("%.50s-%d-%d", c.spec.Schema, place+1, life))
		if err != nil {
			return err
		}
		c.put(place, p)
		err = p.wait(ctx)
		c.put(place, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) start(name string) (*process, error) {
	spec := c.spec
	spec.Name = name
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("describe worker %s: %w", name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{name: name, command: exec.Command(program), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.command.Stderr = &p.says
	// A process group of its own: Ctrl-C is then the parent's alone, and a worker that is stopped when the parent dies is
	// ended by the kernel, which sends SIGHUP to stopped groups that nobody is left to continue.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", name, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", name, err)
	}
	return p, nil
}

func (c *crew) put(place int, p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[place] = p
}

// living are the workers of this moment.
func (c *crew) living() (all []*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.now {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// any picks a worker; nil when none is there.
func (c *crew) any(random *rand.Rand) *process {
	all := c.living()
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}

// wait returns when the process has ended. When ctx ends first, the process is asked to. One that ends by itself is
// an error, with the last that it said.
func (p *process) wait(ctx context.Context) error {
	ask := context.AfterFunc(ctx, func() { _ = p.stdin.Close() })
	defer ask()
	err := p.command.Wait()
	close(p.ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.killed || ctx.Err() != nil && err == nil:
		return nil
	case err == nil:
		return fmt.Errorf("worker %s ended by itself", p.name)
	default:
		return fmt.Errorf("worker %s ended by itself: %w\n%s", p.name, err, p.says.String())
	}
}

// freeze stops the process where it is, thaw lets it go on. Both do nothing to one that has ended.
func (p *process) freeze() { _ = p.command.Process.Signal(syscall.SIGSTOP) }
func (p *process) thaw()   { _ = p.command.Process.Signal(syscall.SIGCONT) }

// kill returns when the process has ended.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.command.Process.Kill()
	<-p.ended
}

// tail keeps the last of what a worker says.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
