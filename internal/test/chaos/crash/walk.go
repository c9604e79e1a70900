package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/faultproxy"
)

// point is a moment of a worker's life: before or after the nth passing of a statement. With n = 0 it is every passing.
type point struct {
	statement string
	when      faultproxy.When
	n         int
}

func (p point) String() string { return fmt.Sprintf("%s:%v:%d", p.statement, p.when, p.n) }

func (p point) every() point { p.n = 0; return p }

// runWalk learns the statements of a clean run, and kills at each of them.
func runWalk(ctx context.Context, a *arena) error {
	points, err := a.learn(ctx, 3*time.Second)
	if err != nil {
		return err
	}
	w, err := a.walk(ctx, points)
	if err == nil {
		w.report()
	}
	return err
}

// learn runs the workers without faults, and returns the points of what they did: the first, second and fifth passing
// of each statement.
func (a *arena) learn(ctx context.Context, lasting time.Duration) (points []point, err error) {
	a.heal()
	if err := a.ensure(); err != nil {
		return nil, err
	}
	if err := run.Sleep(ctx, lasting); err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for _, s := range a.slots {
		for name, n := range s.proxy.Seen() {
			seen[name] = max(seen[name], n)
		}
	}
	a.retire(ctx)
	counts := []int{1, 2, 5}
	if a.Quick {
		counts = []int{2}
	}
	for _, statement := range slices.Sorted(maps.Keys(seen)) {
		for _, n := range counts {
			if n <= seen[statement] {
				points = append(points, point{statement, faultproxy.Before, n}, point{statement, faultproxy.After, n})
			}
		}
	}
	return points, nil
}

// walk kills a worker at every point. The slots walk side by side, each a share of the points.
type walk struct {
	arena *arena

	mu     sync.Mutex // guards all below
	missed []point
	kills  map[point]kills // by point.every
}

// kills at one moment.
type kills struct{ all, inFlight int }

// walk strikes all points. Those that were not reached in time are tried once more, and the moments that were struck at
// no count once more again, each time with more patience.
func (a *arena) walk(ctx context.Context, points []point) (*walk, error) {
	w := &walk{arena: a, kills: map[point]kills{}}
	if err := w.pass(ctx, points, 3*time.Second); err != nil {
		return nil, err
	}
	if err := w.pass(ctx, w.missed, 10*time.Second); err != nil {
		return nil, err
	}
	untouched := w.untouched()
	resigned := slices.DeleteFunc(w.missed, func(p point) bool { return slices.Contains(untouched, p) })
	if err := w.pass(ctx, untouched, 30*time.Second); err != nil {
		return nil, err
	}
	for _, p := range w.untouched() { // a moment that was struck at no count was not tested
		a.Violate("not reached", p.String(), "the walk never came to %v", p)
	}
	w.missed = append(w.missed, resigned...)
	return w, ctx.Err()
}

// pass strikes the points once. Those that were not reached within the time are then in missed.
func (w *walk) pass(ctx context.Context, points []point, within time.Duration) error {
	w.missed = nil
	todo := make(chan point, len(points))
	for _, p := range points {
		todo <- p
	}
	close(todo)
	all := run.NewGroup(ctx)
	for _, s := range w.arena.slots {
		all.Go(func(ctx context.Context) error {
			for p := range todo {
				if err := w.strike(ctx, s, p, within); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// strike starts a worker that will not live longer than to the point.
func (w *walk) strike(ctx context.Context, s *slot, p point, within time.Duration) error {
	s.kill(ctx, "on the way to a new point")
	struck := make(chan bool, 1)
	s.proxy.Set(faultproxy.Fault{Statement: p.statement, N: p.n, When: p.when, Do: faultproxy.Call(func() {
		_, inFlight := s.kill(ctx, reason("at "+p.String()))
		struck <- inFlight
	})})
	// The walk is of healthy and new workers. Those that follow a random kill are careful.
	_, _ = w.arena.Pool.Exec(ctx, sql.Get("crash_forget"))
	if err := s.ensure(); err != nil {
		return err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case inFlight := <-struck:
		w.note(p, &inFlight)
	case <-timer.C:
		w.note(p, nil)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// note counts a kill; nil is none.
func (w *walk) note(p point, inFlight *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if inFlight == nil {
		w.missed = append(w.missed, p)
		return
	}
	k := w.kills[p.every()]
	if k.all++; *inFlight {
		k.inFlight++
	}
	w.kills[p.every()] = k
}

// untouched are the moments that were struck at no count, though it was tried with the first passing.
func (w *walk) untouched() (points []point) {
	for _, p := range w.missed {
		if p.n == 1 && w.kills[p.every()].all == 0 {
			points = append(points, p)
		}
	}
	return points
}

// report notes the sums, and prints a line for each statement.
func (w *walk) report() {
	names, sum := map[string]bool{}, kills{}
	for at, k := range w.kills {
		names[at.statement] = true
		sum.all += k.all
		sum.inFlight += k.inFlight
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := w.kills[point{statement: name}], w.kills[point{statement: name, when: faultproxy.After}]
		w.arena.Printf("%-24s before: kills=%-2d in_flight=%-2d after: kills=%-2d in_flight=%-2d", name, before.all,
			before.inFlight, after.all, after.inFlight)
	}
	for _, p := range w.missed {
		w.arena.Printf("%-24v not reached", p)
	}
	w.arena.Fact("points", sum.all+len(w.missed))
	w.arena.Fact("kills", sum.all)
	w.arena.Fact("in_flight", sum.inFlight)
	w.arena.Fact("missed", len(w.missed))
}
