package run

import (
	"context"
	"sync/atomic"
)

// Ending is how a Run ends whose work is done in terms, one after another or beside each other: none of them is the
// Run, and each may end it. Begin comes before all else; then it is safe for concurrent use.
type Ending struct {
	fatal   chan error
	over    atomic.Bool // the context of Run has ended
	drained atomic.Bool // after that, work had to be cancelled
}

// Begin begins a Run with the context ctx. The Run calls stop when it returns.
func (e *Ending) Begin(ctx context.Context) (stop func() bool) {
	e.fatal = make(chan error, 1)
	e.over.Store(false)
	e.drained.Store(false)
	return context.AfterFunc(ctx, func() { e.over.Store(true) })
}

// GiveUp ends the Run with err, unless another error came first.
func (e *Ending) GiveUp(err error) {
	select {
	case e.fatal <- err:
	default:
	}
}

// Await is a member of the Run's group: it returns what GiveUp was called with, or nil when ctx has ended.
func (e *Ending) Await(ctx context.Context) error {
	select {
	case err := <-e.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Drained notes that work was cancelled because it did not end in time. That counts when the Run is to end, and not
// when a term is over.
func (e *Ending) Drained() {
	if e.over.Load() {
		e.drained.Store(true)
	}
}

// Err returns err, or ErrDrain when there is none and work was cancelled.
func (e *Ending) Err(err error) error {
	if err == nil && e.drained.Load() {
		return ErrDrain
	}
	return err
}
