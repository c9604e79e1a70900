package scheduler

import (
	"fmt"
	"slices"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
)

// Singleton registers a loop of yours that Run runs on one server at a time, in addition to the loops of the
// scheduler: see NewSingleton. Its times are the defaults of SingletonOptions. Call Singleton before Run. It returns
// an error if the name is invalid or registered already, or if Run has been called.
func (s *Scheduler) Singleton(name string, run func(Term) error) error {
	o := s.options
	member, err := NewSingleton(s.Store.pool.Pool, name, run,
		SingletonOptions{Schema: s.schema, Holder: o.Holder, PollOnly: o.PollOnly, Logger: o.Logger})
	if err != nil {
		return err
	}
	return s.singletons.add(member)
}

// Leases returns, without I/O, the state of the scheduler's lease and of its Singletons' leases in this process.
func (s *Scheduler) Leases() []Health {
	own := healthOf(LeaseName, s.engine.Health())
	own.Swept = Swept(s.engine.Swept())
	return append([]Health{own}, s.singletons.health()...)
}

// singletons are the Singletons of a Scheduler, which share its listener. The zero value has no members.
type singletons struct {
	mu      sync.Mutex // guards the following fields
	members []*Singleton
	started bool
}

// add returns an error if the name is registered already, or if the members already run.
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

// start adds each member's loop to group.
func (l *singletons) start(group *run.Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = true
	for _, s := range l.members {
		group.Go(s.bid)
	}
}

// heard passes the payload of each notification on, and "" when notifications may have been missed.
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

// connections returns the number of connections: one for each Singleton, to renew its lease.
func (l *singletons) connections() int { return len(l.all()) }

func (l *singletons) all() []*Singleton {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.members)
}
