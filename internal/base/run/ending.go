package run

import (
	"context"
	"sync/atomic"
)

// Ending is the end of a Run whose work is done in terms, one after the other or in parallel: each term may end the
// Run. Call Begin first; then it is safe for concurrent use.
type Ending struct {
	fatal   chan error
	over    func() error // an error when the context of Run has ended
	drained atomic.Bool  // after that, work had to be cancelled
}

// Begin begins a Run with the context ctx.
func (e *Ending) Begin(ctx context.Context) {
	e.fatal, e.over = make(chan error, 1), ctx.Err
	e.drained.Store(false)
}

// GiveUp ends the Run with err, unless it has an error already.
func (e *Ending) GiveUp(err error) {
	select {
	case e.fatal <- err:
	default:
	}
}

// Await is a member of the Run's group: it returns the error passed to GiveUp, or nil when ctx has ended.
func (e *Ending) Await(ctx context.Context) error {
	select {
	case err := <-e.fatal:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Drained notes that work was cancelled because it did not end in time. That counts only if the Run is to end, and
// not if a term is over.
func (e *Ending) Drained() {
	if e.over() != nil {
		e.drained.Store(true)
	}
}

// Err returns err, or ErrDrain if err is nil and work was cancelled.
func (e *Ending) Err(err error) error {
	if err == nil && e.drained.Load() {
		return ErrDrain
	}
	return err
}
