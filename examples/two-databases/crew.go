package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/edda-go/edda/internal/run"
)

// crew is the worker processes. Each has a place, and whoever is killed is replaced at once.
type crew struct {
	places []worker

	mu       sync.Mutex // guards what follows
	now      []*process // by place; nil while nobody is there
	kills    int
	repeated int // messages that came to an intake and were there before
}

// process is one worker.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	says    tail
	ended   chan struct{}
	killed  bool // by us; guarded by crew.mu
}

func newCrew(places ...worker) *crew {
	return &crew{places: places, now: make([]*process, len(places))}
}

// run keeps every place filled until ctx ends, and then lets the workers finish what they have in hand.
func (c *crew) run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	for place := range c.places {
		all.Go(func(ctx context.Context) error { return c.keep(ctx, place) })
	}
	return all.Wait()
}

func (c *crew) keep(ctx context.Context, place int) error {
	for life := 1; ctx.Err() == nil; life++ {
		w := c.places[place]
		w.Name = fmt.Sprintf("%s-%d-%d", w.Service, place+1, life)
		p, err := c.start(w)
		if err != nil {
			return err
		}
		c.put(place, p)
		err = c.wait(ctx, p)
		c.put(place, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) start(w worker) (*process, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("describe worker %s: %w", w.Name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{name: w.Name, command: exec.Command(program), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.command.Stderr = &p.says
	p.command.Stdout = c
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the parent's alone
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", w.Name, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", w.Name, err)
	}
	return p, nil
}

func (c *crew) put(place int, p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[place] = p
}

// wait returns when the process has ended. When ctx ends first, the process is asked to. One that ends by itself is an error, with
// the last that it said.
func (c *crew) wait(ctx context.Context, p *process) error {
	ask := context.AfterFunc(ctx, func() { _ = p.stdin.Close() })
	defer ask()
	err := p.command.Wait()
	close(p.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.killed || ctx.Err() != nil && err == nil {
		return nil
	}
	return fmt.Errorf("worker %s ended by itself: %v\n%s", p.name, err, p.says.String())
}

// kill sends SIGKILL to one of the workers, which has no say in it, and returns its name when it has ended.
func (c *crew) kill(random *rand.Rand) string {
	c.mu.Lock()
	p := c.now[random.IntN(len(c.now))]
	if p == nil || p.killed {
		c.mu.Unlock()
		return ""
	}
	p.killed = true
	c.kills++
	c.mu.Unlock()
	_ = p.command.Process.Kill()
	<-p.ended
	return p.name
}

// Write hears what the workers report.
func (c *crew) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, word := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(word); err == nil {
			c.repeated += n
		}
	}
	return len(b), nil
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
