package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

// Singleton is a loop that runs on one replica at a time. In memory there is one replica, so it takes no lease, and its
// term begins at once.
type Singleton struct {
	bus     *Bus
	name    string
	run     func(scheduler.Term) error
	running sync.Mutex // held by Run
	calls   run.Calls  // calls of run
}

// NewSingleton makes a Singleton of the function of a scheduler.NewSingleton. When the function has returned, has
// panicked or has ended its goroutine, it is called again after a second of real time, until the context of Run ends.
// Advance does not wait for it.
func NewSingleton(b *Bus, name string, f func(scheduler.Term) error) (*Singleton, error) {
	if b == nil || f == nil {
		return nil, fmt.Errorf("new singleton %.60q: the bus or the function is nil", name)
	}
	if err := lease.CheckName(name); err != nil {
		return nil, fmt.Errorf("new singleton %.60q: %w", name, err)
	}
	s := &Singleton{bus: b, name: "singleton/" + name, run: f}
	return s, b.add(s, s.name)
}

// Name returns the name of the singleton.
func (s *Singleton) Name() string { return s.name }

func (s *Singleton) begun() bool { return true }

const (
	nextTerm = time.Second
	stop     = 30 * time.Second // same as scheduler.SingletonOptions.Stop
)

// Run calls the function until ctx ends. It returns nil after the function has returned, bus.ErrDrain if it does not
// return within 32 seconds, and scheduler.ErrRunning if Run is already running.
func (s *Singleton) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		return fmt.Errorf("run %s: %w", s.name, scheduler.ErrRunning)
	}
	return run.Ends{Name: s.name, Drain: stop, Log: s.bus.log, Calls: &s.calls}.Run(ctx, s.runToEnd)
}

// runToEnd does the work of Run. If the function does not return, it outlives Run, and Run cannot be called again.
func (s *Singleton) runToEnd(ctx context.Context) error {
	defer s.running.Unlock()
	for epoch := int64(1); ctx.Err() == nil; epoch++ {
		err := handlers.ErrExited
		run.Call(func() { err = s.call(term{ctx, epoch}) })
		if err != nil && ctx.Err() == nil {
			s.bus.log.Warn("edda: a singleton in memory failed", "singleton", s.name, "error", err)
		}
		_ = run.Sleep(ctx, nextTerm) // the loop ends with ctx
	}
	return nil
}

func (s *Singleton) call(t term) (err error) {
	defer handlers.Recovered(&err)
	defer s.calls.Enter("the function of "+s.name, [16]byte{}, time.Now())()
	return saga.Examined(s.run(t))
}

// term is the term of the one replica.
type term struct {
	context.Context
	epoch int64
}

var errNoDatabase = errors.New("the bus is in memory and has no database")

// Epoch returns the number of the term.
func (t term) Epoch() int64 { return t.epoch }

// Guard returns an error, because there is no transaction to guard.
func (t term) Guard(context.Context, pgx.Tx) error { return errNoDatabase }

// InTx returns an error, because there is no database.
func (t term) InTx(context.Context, func(pgx.Tx) error) error { return errNoDatabase }
