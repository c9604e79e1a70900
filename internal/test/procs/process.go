package procs

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

// Job describes a worker to start.
type Job struct {
	Name     string    // in errors, and in reports of the parent
	Variable string    // the variable of the environment that makes the program a worker
	Task     any       // the value of Variable, as JSON
	Stdout   io.Writer // nil drops it
	Stderr   io.Writer // gets it too, in addition to Process, which keeps its end; nil drops it
}

// Process is one worker. Its methods may be called concurrently.
type Process struct {
	Name string

	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  tail
	killed  atomic.Bool // by this program
	ended   chan struct{}
	end     error // the error of the process, after ended is closed
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
	p.command.Stdout, p.command.Stderr = j.Stdout, &p.stderr
	if j.Stderr != nil {
		p.command.Stderr = io.MultiWriter(&p.stderr, j.Stderr)
	}
	// The worker has a process group of its own, so that Ctrl-C reaches only the parent. A worker that is frozen when
	// the parent dies is ended by the kernel, which sends SIGHUP to a stopped group that has lost its parent.
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

// Pid returns the system's number of the process.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// WriteLine writes a line to the worker's standard input. Listen passes it to the worker.
func (p *Process) WriteLine(line string) error {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return fmt.Errorf("write %q to worker %s: %w", line, p.Name, err)
	}
	return nil
}

// Freeze stops the process where it is, and Thaw continues it. A frozen process sends nothing, so its state as
// observed does not change. Freeze returns when every thread has stopped: after the signal alone, threads on other
// processors continue for a moment.
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
		_, after, _ := bytes.Cut(stat, []byte(") ")) // the name of the program comes before it
		return len(after) > 0 && !bytes.ContainsRune([]byte("TtZX"), rune(after[0]))
	})
}

// Thaw undoes Freeze.
func (p *Process) Thaw() { _ = p.command.Process.Signal(syscall.SIGCONT) }

// Kill sends SIGKILL and returns when the process has ended.
func (p *Process) Kill() {
	if p.hasEnded() {
		return // it ended by itself, and End returns that
	}
	p.killed.Store(true)
	_ = p.command.Process.Kill()
	<-p.ended
}

// Wait returns when the process has ended. If ctx ends first, Wait requests the end of the process. It returns an
// error, with the end of the process's standard error, if the process ended without a request or kill, or if it
// failed.
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

// End returns when the process has ended, and does not request that. It returns an error if the process was not
// killed.
func (p *Process) End() error {
	<-p.ended
	if p.killed.Load() {
		return nil
	}
	return p.byItself()
}

// Stop requests the end of the process, and returns when it has ended. It returns an error if the process failed, or
// if it took longer than within; Stop then kills it. If the process had ended before without an error, Stop returns
// no error.
func (p *Process) Stop(within time.Duration) error {
	p.ask()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("worker %s did not end within %v\n%s", p.Name, within, p.stderr.String())
	}
	if p.killed.Load() || p.end == nil {
		return nil
	}
	return p.byItself()
}

// ask closes the worker's standard input, which ends the worker's context.
func (p *Process) ask() { _ = p.stdin.Close() }

func (p *Process) byItself() error {
	if p.end == nil {
		return fmt.Errorf("worker %s ended by itself\n%s", p.Name, p.stderr.String())
	}
	return fmt.Errorf("worker %s ended by itself: %w\n%s", p.Name, p.end, p.stderr.String())
}
