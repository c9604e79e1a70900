package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/pgdev/faultproxy"
	"github.com/edda-go/edda/internal/run"
)

// point is a moment of a worker's life: before or after the nth passing of a statement.
type point struct {
	statement string
	when      faultproxy.When
	n         int
}

func (p point) String() string { return fmt.Sprintf("%s:%v:%d", p.statement, p.when, p.n) }

func parsePoint(text string) (point, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[1] != "before" && parts[1] != "after" {
		return point{}, fmt.Errorf("point %q: want statement:before:n or statement:after:n", text)
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 1 {
		return point{}, fmt.Errorf("point %q: %q is no count", text, parts[2])
	}
	p := point{statement: parts[0], n: n}
	if parts[1] == "after" {
		p.when = faultproxy.After
	}
	return p, nil
}

// walk kills a worker at every point. The slots walk side by side, each a share of the points.
type walk struct {
	lab    *lab
	within time.Duration // to reach a point

	mu     sync.Mutex // guards all below
	left   []point
	missed []point
	kills  map[moment]*kills
}

// moment is a point without its count.
type moment struct {
	statement string
	when      faultproxy.When
}

func (p point) moment() moment { return moment{p.statement, p.when} }

// kills at one moment.
type kills struct{ all, inFlight int }

// learn runs the workers without faults, and returns how often every statement passed.
func (l *lab) learn(ctx context.Context, lasting time.Duration) (map[string]int, error) {
	for _, s := range l.slots {
		s.proxy.Set()
	}
	if err := l.ensure(); err != nil {
		return nil, err
	}
	if err := run.Sleep(ctx, lasting); err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for _, s := range l.slots {
		for name, n := range s.proxy.Seen() {
			seen[name] = max(seen[name], n)
		}
	}
	l.retire(ctx)
	return seen, nil
}

// pointsOf lists the points of a clean run: the first, second and fifth passing of each statement.
func pointsOf(seen map[string]int, counts []int) []point {
	var points []point
	for _, statement := range slices.Sorted(maps.Keys(seen)) {
		for _, n := range counts {
			if n <= seen[statement] {
				points = append(points, point{statement, faultproxy.Before, n}, point{statement, faultproxy.After, n})
			}
		}
	}
	return points
}

// walk strikes all points, those that were not reached in time once more, and the moments that were struck at no
// count once more again, each time with more patience.
func (l *lab) walk(ctx context.Context, points []point) (*walk, error) {
	w := &walk{lab: l, kills: map[moment]*kills{}}
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
	w.complain()
	w.missed = append(w.missed, resigned...)
	return w, ctx.Err()
}

// pass strikes the points once. Those that were not reached within the time are then in missed.
func (w *walk) pass(ctx context.Context, points []point, within time.Duration) error {
	w.left, w.missed, w.within = points, nil, within
	all := run.NewGroup(ctx)
	for _, s := range w.lab.slots {
		all.Go(func(ctx context.Context) error { return w.share(ctx, s) })
	}
	return all.Wait()
}

func (w *walk) share(ctx context.Context, s *slot) error {
	for {
		p, more := w.next()
		if !more || ctx.Err() != nil {
			return nil
		}
		if err := w.strike(ctx, s, p); err != nil {
			return err
		}
	}
}

func (w *walk) next() (point, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.left) == 0 {
		return point{}, false
	}
	p := w.left[0]
	w.left = w.left[1:]
	return p, true
}

// strike starts a worker that will not live longer than to the point.
func (w *walk) strike(ctx context.Context, s *slot, p point) error {
	s.kill(ctx, "on the way to another point")
	struck := make(chan bool, 1)
	s.proxy.Set(faultproxy.Fault{Statement: p.statement, N: p.n, When: p.when, Do: faultproxy.Call(func() {
		_, inFlight := s.kill(ctx, reason("at "+p.String()))
		struck <- inFlight
	})})
	// The walk is of healthy and new workers; those that random kills leave behind are careful.
	_, _ = w.lab.pool.Exec(ctx, statements.Get("crash_forget"))
	if err := s.ensure(); err != nil {
		return err
	}
	timer := time.NewTimer(w.within)
	defer timer.Stop()
	select {
	case inFlight := <-struck:
		w.note(p, inFlight)
	case <-timer.C:
		w.mu.Lock()
		w.missed = append(w.missed, p)
		w.mu.Unlock()
	case <-ctx.Done():
	}
	return nil
}

func (w *walk) note(p point, inFlight bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := p.moment()
	if w.kills[at] == nil {
		w.kills[at] = &kills{}
	}
	w.kills[at].all++
	if inFlight {
		w.kills[at].inFlight++
	}
}

// untouched are the moments that were struck at no count, though it was tried with the first passing.
func (w *walk) untouched() (points []point) {
	for _, p := range w.missed {
		if p.n == 1 && w.kills[p.moment()] == nil {
			points = append(points, p)
		}
	}
	return points
}

// complain: a moment that was struck at no count was not tested.
func (w *walk) complain() {
	for _, p := range w.untouched() {
		w.lab.violate(violation{rule: "not reached", id: p.String(), what: fmt.Sprintf("the walk never came to %v", p)})
	}
}

// summary is the phase's line; table has a line for each statement.
func (w *walk) summary() string {
	sum := kills{}
	for _, k := range w.kills {
		sum.all += k.all
		sum.inFlight += k.inFlight
	}
	return fmt.Sprintf("points=%d kills=%d in_flight=%d missed=%d", sum.all+len(w.missed), sum.all, sum.inFlight,
		len(w.missed))
}

func (w *walk) table() string {
	statements := map[string]bool{}
	for at := range w.kills {
		statements[at.statement] = true
	}
	var text strings.Builder
	for _, statement := range slices.Sorted(maps.Keys(statements)) {
		fmt.Fprintf(&text, "    %-24s", statement)
		for _, when := range []faultproxy.When{faultproxy.Before, faultproxy.After} {
			k := cmp.Or(w.kills[moment{statement, when}], &kills{})
			fmt.Fprintf(&text, " %6v: kills=%-2d in_flight=%-2d", when, k.all, k.inFlight)
		}
		text.WriteString("\n")
	}
	for _, p := range w.missed {
		fmt.Fprintf(&text, "    %-24v not reached\n", p)
	}
	return text.String()
}
