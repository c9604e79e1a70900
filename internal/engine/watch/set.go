package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Options are the options of a Set. All are required.
type Options struct {
	Pool  *pg.Pool
	Sagas *persistence.Store
	Log   *slog.Logger // for failures that are tried again

	// Consumes reports whether messages for d come through a queue, as far as this process has read the
	// subscriptions.
	Consumes func(queue int, d *saga.Definition) bool
}

// Set holds all instances that this process watches. Safe for concurrent use.
type Set struct {
	options Options
	number  atomic.Int32 // of topics

	mu     sync.Mutex // guards the fields below, and the fields of topics
	topics map[name]*topic
	loop   *run.Group
	signal run.Nudge // to the loop: a topic is urgent
	looks  uint64    // that have begun
	sent   time.Time // when Sent last made topics urgent
}

type name struct{ saga, key string }

// topic is one watched instance, shared by all its viewers.
type topic struct {
	set  *Set
	def  *saga.Definition
	name name

	viewers int
	now     saga.Instance // as of the last look; an empty ID means that there is no instance
	err     error         // of a look; time does not cure it
	looked  uint64        // number of the last look; 0 before the first
	joined  uint64        // the look that the newest viewer waits for
	changed chan struct{} // closed when viewers should compare
	urgent  bool
	wait    time.Duration
	next    time.Time
}

// New returns a Set that watches nothing yet.
func New(o Options) *Set { return &Set{options: o, topics: map[name]*topic{}} }

// Len returns how many instances are watched.
func (s *Set) Len() int { return int(s.number.Load()) }

// Urgent reports whether the next look reads an instance before its time has come.
func (s *Set) Urgent(sagaName, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name{sagaName, key}]
	return t != nil && t.urgent
}

// Join adds a viewer of the instance of d with this key. The viewer must call Leave.
func (s *Set) Join(ctx context.Context, d *saga.Definition, key string) *Viewer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		signal := run.NewNudge()
		s.signal, s.loop = signal, run.NewGroup(context.WithoutCancel(ctx))
		s.loop.Go(func(ctx context.Context) error { return s.run(ctx, signal) })
	}
	at := name{d.Name(), key}
	t := s.topics[at]
	if t == nil {
		t = &topic{set: s, def: d, name: at, changed: make(chan struct{}), now: saga.Instance{Saga: at.saga, Key: key}}
		s.topics[at] = t
		s.number.Add(1)
	}
	t.viewers++
	t.joined = s.looks + 1
	t.hurry()
	return &Viewer{topic: t, fresh: t.joined}
}

// leave removes one viewer from the topic. After the last viewer of all topics it returns the loop, for the caller to
// stop.
func (s *Set) leave(t *topic) (last *run.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.viewers--; t.viewers > 0 {
		return nil
	}
	delete(s.topics, t.name)
	s.number.Add(-1)
	if len(s.topics) == 0 {
		last, s.loop, s.signal = s.loop, nil, nil
	}
	return last
}

// hurry makes the loop read the topic now. The caller holds mu.
func (t *topic) hurry() {
	t.urgent, t.wait = true, 0
	t.set.signal.Send()
}

// Changed notes that this process has committed a change of an instance.
func (s *Set) Changed(sagaName, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name{sagaName, key}]; t != nil {
		t.hurry()
	}
}

// Sent notes that messages are in a queue. Their handlers may soon change watched instances. It does not hurry a
// topic that has not changed for long.
func (s *Set) Sent(queue int) {
	if s.number.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.sent) < sentGap {
		return
	}
	s.sent = now
	consumed := map[*saga.Definition]bool{}
	for _, t := range s.topics {
		if _, known := consumed[t.def]; !known {
			consumed[t.def] = s.options.Consumes(queue, t.def)
		}
		if consumed[t.def] && t.wait < lookSeldom {
			t.urgent = true
			s.signal.Send()
		}
	}
}
