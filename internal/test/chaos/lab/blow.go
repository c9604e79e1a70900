package lab

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/procs"
)

// The kinds of blows that every scenario knows.
const (
	Kill   = "kill"
	Freeze = "freeze"
)

// Record writes a blow into the ledger.
func (l *Lab) Record(ctx context.Context, kind, what string) error {
	return l.Exec(ctx, statements.Get("blow"), what, kind)
}

// Note counts a blow, prints it, and writes it into the ledger.
func (l *Lab) Note(ctx context.Context, kind, what string) error {
	err := l.Record(ctx, kind, what)
	l.notes.mu.Lock()
	l.notes.blows[kind]++
	l.notes.mu.Unlock()
	l.Printf("%s %s", kind, what)
	return err
}

// Blows is how many of a kind there were.
func (l *Lab) Blows(kind string) int {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	return l.notes.blows[kind]
}

// Kill kills a worker. The ledger has the moment after it: no run of a handler of that worker lasted longer.
func (l *Lab) Kill(ctx context.Context, p *procs.Process) error {
	p.Kill()
	return l.Note(ctx, Kill, p.Name)
}

// Freeze stops a worker for a time, in which meanwhile is called once what the worker had sent before is done. Whatever
// the worker held then has ended when its lease says so: the worker can extend nothing.
func (l *Lab) Freeze(ctx context.Context, p *procs.Process, lasting time.Duration, meanwhile func() error) error {
	p.Freeze()
	defer p.Thaw()
	if err := l.Note(ctx, Freeze, p.Name); err != nil {
		return err
	}
	const settled = 200 * time.Millisecond
	if err := run.Sleep(ctx, settled); err != nil {
		return err
	}
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return run.Sleep(ctx, max(0, lasting-settled))
}
