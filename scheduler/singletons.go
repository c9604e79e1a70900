package scheduler

import (
	"fmt"
	"slices"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
)

// Singleton registers a loop of yours that Run runs on one server at a time, beside those of the scheduler: see
// NewSingleton. Call it before Run. It fails if the name is invalid or is given twice. Its times are the defaults of
// SingletonOptions.
func (s *Scheduler) Singleton(name string, run func(Term) error) error {
	o := s.options
	member, err := NewSingleton(s.Store.pool.Pool, name, run,
		SingletonOptions{Schema: s.schema, Holder: o.Holder, PollOnly: o.PollOnly, Logger: o.Logger})
	if err != nil {
		return err
	}
	return s.singletons.add(member)
}

// Leases returns what this server knows about the lease of the scheduler and those of its Singletons, without I/O.
func (s *Scheduler) Leases() []Health {
	own := healthOf(LeaseName, s.engine.Health())
	own.Swept = Swept(s.engine.Swept())
	return append([]Health{own}, s.singletons.health()...)
}

// singletons are those that a Scheduler runs beside its own loops, and that share its listener. The zero singletons are
// none.
type singletons struct {
	mu      sync.Mutex // guards what follows
	members []*Singleton
	started bool
}

// add refuses two with one name, and one that comes when the others run already.
func (l *singletons) add(s *Singleton) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.started:
		return fmt.Errorf("singleton %s: the scheduler runs already", s.name)
	case slices.ContainsFunc(l.members, func(other *Singleton) bool { return other.name == s.name }):
		return fmt.Errorf("singleton %s is given twice", s.name)
	}
	l.members = append(l.members, s)
	return nil
}

// start makes each a member of group.
func (l *singletons) start(group *run.Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = true
	for _, s := range l.members {
		group.Go(s.bid)
	}
}

// heard is for the payload of each notification, and "" when some may have been missed.
func (l *singletons) heard(payload string) {
	for _, s := range l.all() {
		s.heard(payload)
	}
}

func (l *singletons) health() (list []Health) {
	for _, s := range l.all() {
		list = append(list, s.Health())
	}
	return list
}

// connections is the number of connections: one for each Singleton, which renews its lease.
func (l *singletons) connections() int { return len(l.all()) }

func (l *singletons) all() []*Singleton {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.members)
}
