package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// crew is the server processes. One that was killed is started again after a while.
type crew struct {
	spec  server
	away  time.Duration // before that
	story *story

	mu  sync.Mutex // guards now
	now map[string]*process
}

// process is one server.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	says    tail

	mu     sync.Mutex // guards killed
	killed bool       // by us
}

func newCrew(spec server, away time.Duration, s *story) *crew {
	return &crew{spec: spec, away: away, story: s, now: map[string]*process{}}
}

// run keeps the servers running until ctx ends, and then lets them finish what they have in hand.
func (c *crew) run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	for _, name := range []string{"server-1", "server-2"} {
		all.Go(func(ctx context.Context) error { return c.keep(ctx, name) })
	}
	return all.Wait()
}

func (c *crew) keep(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		p, err := c.start(name)
		if err != nil {
			return err
		}
		c.story.tell("%s starts, process %d", name, p.command.Process.Pid)
		c.put(p)
		if err := p.wait(ctx); err != nil {
			return err
		}
		_ = run.Sleep(ctx, c.away) // nobody is killed any more when it ends early
	}
	return nil
}

func (c *crew) start(name string) (*process, error) {
	spec := c.spec
	spec.Name = name
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{name: name, command: exec.Command(program)}
	p.command.Env = append(os.Environ(), serverVariable+"="+string(text))
	p.command.Stderr = &p.says
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the parent's alone
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (c *crew) put(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[p.name] = p
}

// holder finds the server that holds a lease under a name that begins with its own.
func (c *crew) holder(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.now {
		if strings.HasPrefix(name, p.name) {
			return p
		}
	}
	return nil
}

// wait returns when the process has ended. When ctx ends first, the process is asked to. One that ends by itself is
// an error, with the last that it said.
func (p *process) wait(ctx context.Context) error {
	ask := context.AfterFunc(ctx, func() { _ = p.stdin.Close() })
	defer ask()
	err := p.command.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.killed || ctx.Err() != nil && err == nil:
		return nil
	case err == nil:
		return fmt.Errorf("%s ended by itself\n%s", p.name, p.says.String())
	default:
		return fmt.Errorf("%s ended by itself: %w\n%s", p.name, err, p.says.String())
	}
}

// kill is SIGKILL: the process has no say in it.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	return nil
}

// tail keeps the last of what a server says.
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
