package lab

import (
	"context"

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

// Kill kills a worker. The ledger gets the moment after it, also when ctx ends: no handler of that worker ran longer.
func (l *Lab) Kill(ctx context.Context, p *procs.Process) error {
	p.Kill()
	return l.Note(context.WithoutCancel(ctx), Kill, p.Name)
}
