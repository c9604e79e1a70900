package bus

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// How often watched instances are looked at.
const (
	lookOften  = 250 * time.Millisecond // after a change, and
	lookSeldom = time.Second            // when nothing has changed for a while
	lookGap    = 10 * time.Millisecond  // between two looks, whatever is called for
	hearGap    = 100 * time.Millisecond // between two looks for messages on their way

	lookMost     = 2000 // instances of one query
	watchTimeout = 10 * time.Second
)

// watching looks at all instances that somebody of this process watches. One loop does it for all: the first viewer
// starts it, and the last one to leave waits for its end. Safe for concurrent use.
type watching struct {
	bus    *Bus
	number atomic.Int32 // of topics

	mu     sync.Mutex // guards what follows, and the fields of topics
	topics map[handle]*topic
	loop   *run.Group
	call   chan struct{} // to the loop: a topic is urgent
	looks  uint64        // begun
	heard  time.Time
}

// topic is an instance that is watched, once for all its viewers.
type topic struct {
	of  *watching
	def *saga.Definition
	key string

	viewers int
	now     saga.Instance // as of the last look; without an ID there is none
	err     error         // of a look, that will not go away
	looked  uint64        // the last look, 0: none
	joined  uint64        // the look that the newest viewer waits for
	changed chan struct{} // closed when viewers should compare
	urgent  bool
	wait    time.Duration
	next    time.Time
}

func newWatching(b *Bus) *watching {
	return &watching{bus: b, topics: map[handle]*topic{}}
}

func (w *watching) join(ctx context.Context, d *saga.Definition, key string) *viewer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loop == nil {
		call := make(chan struct{}, 1)
		w.call, w.loop = call, run.NewGroup(context.WithoutCancel(ctx))
		w.loop.Go(func(ctx context.Context) error { return w.run(ctx, call) })
	}
	at := handle{saga: d.Name(), key: key}
	t := w.topics[at]
	if t == nil {
		t = &topic{of: w, def: d, key: key, changed: make(chan struct{}), now: saga.Instance{Saga: d.Name(), Key: key}}
		w.topics[at] = t
		w.number.Add(1)
	}
	t.viewers++
	t.joined = w.looks + 1
	t.hurry()
	return &viewer{topic: t, def: d, fresh: t.joined}
}

func (v *viewer) leave() {
	if last := v.of.part(v.topic); last != nil {
		last.Stop()
		_ = last.Wait() // its member has no errors
	}
}

// part takes one viewer from the topic. It returns the loop to be stopped after the last one.
func (w *watching) part(t *topic) (last *run.Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.viewers--; t.viewers > 0 {
		return nil
	}
	delete(w.topics, handle{saga: t.def.Name(), key: t.key})
	w.number.Add(-1)
	if len(w.topics) == 0 {
		last, w.loop, w.call = w.loop, nil, nil
	}
	return last
}

// hurry has the topic looked at now. The caller holds mu.
func (t *topic) hurry() {
	t.urgent, t.wait = true, 0
	signal(t.of.call)
}

// committed tells that this process has changed, started or ended instances, which may be watched.
func (w *watching) committed(messages []*message) {
	if w.number.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var last *instance
	for _, m := range messages {
		if m.fate != done || m.instance == nil || m.instance == last {
			continue
		}
		last = m.instance
		name, key := last.name()
		if t := w.topics[handle{saga: name, key: key}]; t != nil {
			t.hurry()
		}
	}
}

// called tells of messages in a queue. Whoever handles them may be about to change instances that are watched; those
// that have rested for long are not looked at for it.
func (w *watching) called(queue int) {
	if w.number.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.heard) < hearGap {
		return
	}
	w.heard = now
	consumed := map[*saga.Definition]bool{}
	for _, t := range w.topics {
		if _, known := consumed[t.def]; !known {
			consumed[t.def] = w.bus.routes.consumes(queue, t.def)
		}
		if consumed[t.def] && t.wait < lookSeldom {
			t.urgent = true
			signal(w.call)
		}
	}
}

// run looks until ctx ends.
func (w *watching) run(ctx context.Context, call <-chan struct{}) error {
	retry := newPatience()
	for ctx.Err() == nil {
		begun := time.Now()
		pause := lookGap
		if err := w.look(ctx, call); err != nil && ctx.Err() == nil {
			w.bus.calm.Warn("edda: watched instances were not read", "error", err)
			pause = retry.NextBackOff()
		} else {
			retry.Reset()
		}
		if run.Sleep(ctx, pause) == nil {
			sleepUnlessCalled(ctx, call, run.Jitter(lookOften)-time.Since(begun))
		}
	}
	return nil
}

// sleepUnlessCalled waits for the next look that is due, or is called for.
func sleepUnlessCalled(ctx context.Context, call <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-call:
	case <-ctx.Done():
	}
}

// look reads the topics that are due in one query, or several when there are very many, and tells their viewers.
func (w *watching) look(ctx context.Context, call <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	due, number := w.due(call)
	for some := range slices.Chunk(due, lookMost) {
		changes, err := w.bus.sagas.Changed(ctx, w.bus.pool, w.known(some))
		class := pg.ClassOf(err)
		if err != nil && class != pg.Denied && class != pg.Unprepared {
			w.again(due)
			return err
		}
		w.apply(some, lookedAt{number, changes, explain(err)})
	}
	return nil
}

// due are the topics to look at, and the number of the look.
func (w *watching) due(call <-chan struct{}) (due []*topic, number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call != call {
		return nil, 0 // the last viewer has left
	}
	select {
	case <-call: // what it called for is in due
	default:
	}
	now := time.Now()
	for _, t := range w.topics {
		if t.urgent || now.Add(lookOften/4).After(t.next) {
			t.urgent = false
			due = append(due, t)
		}
	}
	w.looks++
	return due, w.looks
}

func (w *watching) known(topics []*topic) []persistence.Known {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := make([]persistence.Known, len(topics))
	for n, t := range topics {
		known[n] = persistence.Known{Saga: t.def.Name(), Key: t.key, ID: t.now.ID, Version: t.now.Version}
	}
	return known
}

// again leaves topics for the next look, after one that has failed.
func (w *watching) again(topics []*topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range topics {
		t.urgent = true
	}
}

// lookedAt is what a look has found.
type lookedAt struct {
	number  uint64
	changes []persistence.Change
	err     error
}

// apply writes down what a look has found, and calls the viewers for whom it may be news.
func (w *watching) apply(topics []*topic, l lookedAt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := make([]bool, len(topics))
	for _, c := range l.changes {
		topics[c.N].now, news[c.N] = c.Instance, true
	}
	now := time.Now()
	for n, t := range topics {
		if news[n] || l.err != nil || t.joined > t.looked {
			close(t.changed)
			t.changed = make(chan struct{})
		}
		if t.wait = min(max(2*t.wait, lookOften), lookSeldom); news[n] {
			t.wait = lookOften
		}
		t.looked, t.err, t.next = l.number, l.err, now.Add(t.wait)
	}
}
