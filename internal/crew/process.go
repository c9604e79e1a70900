package crew

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Job is what a worker is started with.
type Job struct {
	Name     string    // in errors, and wherever the parent tells of it
	Variable string    // of the environment, which makes the program a worker
	Task     any       // the value of Variable, as JSON
	Stdout   io.Writer // nil: nobody hears it
	Stderr   io.Writer // hears what Process keeps the end of; nil: nobody else does
}

// Process is one worker. Its methods may be called concurrently.
type Process struct {
	Name string

	command *exec.Cmd
	stdin   io.WriteCloser
	says    tail
	killed  atomic.Bool // by us
	ended   chan struct{}
	end     error // what the process ended with, once ended is closed
}

// Start starts this program's binary again, as a worker.
func Start(j Job) (*Process, error) {
	text, err := json.Marshal(j.Task)
	if err != nil {
		return nil, fmt.Errorf("describe worker %s: %w", j.Name, err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &Process{Name: j.Name, command: exec.Command(program), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), j.Variable+"="+string(text))
	p.command.Stdout, p.command.Stderr = j.Stdout, &p.says
	if j.Stderr != nil {
		p.command.Stderr = io.MultiWriter(&p.says, j.Stderr)
	}
	// A process group of its own: Ctrl-C is then the parent's alone, and a worker that is stopped when the parent dies
	// is ended by the kernel, which sends SIGHUP to stopped groups that nobody is left to continue.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", j.Name, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", j.Name, err)
	}
	go func() {
		defer close(p.ended)
		p.end = p.command.Wait()
	}()
	return p, nil
}

// Pid is the number that the system gave the process.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Tell writes a line to the worker's standard input, which Listen hands to it.
func (p *Process) Tell(line string) error {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return fmt.Errorf("tell worker %s %q: %w", p.Name, line, err)
	}
	return nil
}

// Freeze stops the process where it is, Thaw lets it go on. A frozen process sends nothing, so what is seen of it stays
// true. It returns when every thread stands still: the signal alone leaves those on other processors a moment in which
// they go on.
func (p *Process) Freeze() {
	_ = p.command.Process.Signal(syscall.SIGSTOP)
	for !p.hasEnded() && p.moves() {
		time.Sleep(time.Millisecond)
	}
}

// moves reports whether a thread of the process still runs or may run. Without a /proc it reports false.
func (p *Process) moves() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(threads, func(path string) bool {
		stat, err := os.ReadFile(path)
		if err != nil {
			return false // it has ended
		}
		_, after, _ := bytes.Cut(stat, []byte(") ")) // the name of the program stands before it
		return len(after) > 0 && !bytes.ContainsRune([]byte("TtZX"), rune(after[0]))
	})
}

// Thaw undoes Freeze.
func (p *Process) Thaw() { _ = p.command.Process.Signal(syscall.SIGCONT) }

// Kill is SIGKILL, in which the process has no say. It returns when the process has ended.
func (p *Process) Kill() {
	if p.hasEnded() {
		return // by itself, and that stays its end
	}
	p.killed.Store(true)
	_ = p.command.Process.Kill()
	<-p.ended
}

// Wait returns when the process has ended. When ctx ends first, the process is asked to end. One that was neither asked
// nor killed, or that ended badly, is an error with the last that it said.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.ask()
		<-p.ended
	}
	if ctx.Err() != nil && p.end == nil {
		return nil
	}
	return p.End()
}

// End returns when the process has ended, of which it asks nothing. One that was not killed is an error with the last
// that it said.
func (p *Process) End() error {
	<-p.ended
	if p.killed.Load() {
		return nil
	}
	return p.byItself()
}

// Dismiss asks the process to end, and returns when it has. One that takes longer than within is killed, which is an
// error, and so is one that ended badly. One that had ended before because there was nothing left to do is none.
func (p *Process) Dismiss(within time.Duration) error {
	p.ask()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("worker %s did not end within %v\n%s", p.Name, within, p.says.String())
	}
	if p.killed.Load() || p.end == nil {
		return nil
	}
	return p.byItself()
}

// ask closes the worker's standard input, at which its context ends.
func (p *Process) ask() { _ = p.stdin.Close() }

func (p *Process) byItself() error {
	if p.end == nil {
		return fmt.Errorf("worker %s ended by itself\n%s", p.Name, p.says.String())
	}
	return fmt.Errorf("worker %s ended by itself: %w\n%s", p.Name, p.end, p.says.String())
}
