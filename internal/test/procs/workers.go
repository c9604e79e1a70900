package procs

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
)

// Options are the options of Workers. The zero value replaces a killed worker at once.
type Options struct {
	MayEnd  bool           // a worker may end by itself, and its place is empty from then on
	Started func(*Process) // called after a worker was started, concurrently for several places; nil does nothing
}

// Workers keeps places filled with worker processes. Its methods may be called concurrently.
type Workers struct {
	Options
	job func(place, life int) Job

	mu  sync.Mutex // guards now
	now []*Process // by place; nil while a place is empty
}

// NewWorkers returns a set of workers and starts no worker yet. job describes the worker of a place in its first,
// second … life. Places count from 0, lives from 1.
func NewWorkers(places int, job func(place, life int) Job, o Options) *Workers {
	return &Workers{Options: o, job: job, now: make([]*Process, places)}
}

// Run keeps every place filled until ctx ends, and then waits for the workers to finish their work in hand. If a
// worker ends by itself, Run ends all of them, with an error, unless the worker may end.
func (w *Workers) Run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	for place := range w.now {
		all.Go(func(ctx context.Context) error { return w.keep(ctx, place) })
	}
	return all.Wait()
}

func (w *Workers) keep(ctx context.Context, place int) error {
	for life := 1; ctx.Err() == nil; life++ {
		p, err := Start(w.job(place, life))
		if err != nil {
			return err
		}
		w.put(place, p)
		if w.Started != nil {
			w.Started(p)
		}
		err = p.Wait(ctx)
		w.put(place, nil)
		if w.MayEnd && p.end == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Workers) put(place int, p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[place] = p
}

// Living returns the workers that are running, in the order of their places.
func (w *Workers) Living() (all []*Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.now {
		if p != nil && !p.hasEnded() {
			all = append(all, p)
		}
	}
	return all
}

// At returns the worker at a place, or nil if no worker runs there.
func (w *Workers) At(place int) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.now[place]; p != nil && !p.hasEnded() {
		return p
	}
	return nil
}

// Any picks a living worker, or nil.
func (w *Workers) Any(random *rand.Rand) *Process {
	all := w.Living()
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}
