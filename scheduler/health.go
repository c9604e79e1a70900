package scheduler

import (
	"time"

	"github.com/edda-go/edda/internal/lease"
)

// Health is how this process stands to a lease, by what it knows itself.
type Health struct {
	Lease   string
	Replica string // the name under which this process bids

	Holding  bool // this process has the lease: its function runs
	Stopping bool // and its term has ended, and the function has not returned yet

	// Holder and Epoch are of the term that this process has, else of the one that its last bid met: at most an Acquire
	// interval old. Holder is "" when nobody had the lease then.
	Holder string
	Epoch  int64

	// by this process's clock, when Holding: nobody else has the lease until then, whatever happens
	TrustedUntil time.Time

	Acquired, Released, Lost int64 // terms of this process that began; and those that ended in order, and otherwise

	Swept Swept // the last pass, where the function is a Sweep
}

// Health tells how this process stands to the lease. It asks nobody and waits for nothing.
func (s *Singleton) Health() Health {
	h := healthOf(s.name, s.keeper.Health())
	if last := s.swept.Load(); last != nil {
		h.Swept = *last
	}
	return h
}

// Leases is Health, as a list of one: for eddaprom.
func (s *Singleton) Leases() []Health { return []Health{s.Health()} }

// healthOf is also for the leases of a Scheduler.
func healthOf(name string, h lease.Health) Health {
	return Health{
		Lease: name, Replica: h.Replica, Holding: h.State != lease.Standby, Stopping: h.State == lease.Stopping,
		Holder: h.Term.Holder, Epoch: h.Term.Epoch, TrustedUntil: h.Trusted,
		Acquired: h.Acquired, Released: h.Released, Lost: h.Lost,
	}
}
