package crew

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/run"
)

// Options are what a crew may have beside its places. The zero value replaces whoever is killed at once, and tells
// nobody.
type Options struct {
	Away    time.Duration  // how long a place stays empty after a kill
	Started func(*Process) // is called when a worker has been started; concurrently for several places
}

// Crew keeps places filled with workers. Its methods may be called concurrently.
type Crew struct {
	Options
	hire func(place, life int) Job

	mu  sync.Mutex // guards now
	now []*Process // by place; nil while nobody is there
}

// New makes a crew. hire describes the worker of a place, in its first, second … life; places count from 0, lives from
// 1.
func New(places int, hire func(place, life int) Job, o Options) *Crew {
	return &Crew{Options: o, hire: hire, now: make([]*Process, places)}
}

// Run keeps every place filled until ctx ends, and then lets the workers finish what they have in hand. A worker that
// ends by itself ends them all, with an error.
func (c *Crew) Run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	for place := range c.now {
		all.Go(func(ctx context.Context) error { return c.keep(ctx, place) })
	}
	return all.Wait()
}

func (c *Crew) keep(ctx context.Context, place int) error {
	for life := 1; ctx.Err() == nil; life++ {
		p, err := Start(c.hire(place, life))
		if err != nil {
			return err
		}
		c.put(place, p)
		if c.Started != nil {
			c.Started(p)
		}
		err = p.Wait(ctx)
		c.put(place, nil)
		if err != nil {
			return err
		}
		_ = run.Sleep(ctx, c.Away) // its end is the loop's
	}
	return nil
}

func (c *Crew) put(place int, p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[place] = p
}

// Living are the workers of this moment, in the order of their places.
func (c *Crew) Living() (all []*Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.now {
		if p != nil && !p.hasEnded() {
			all = append(all, p)
		}
	}
	return all
}

// Any picks one of the living; nil when there is none.
func (c *Crew) Any(random *rand.Rand) *Process {
	all := c.Living()
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}
