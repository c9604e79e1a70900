package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	firstPause = 100 * time.Millisecond
	mostPause  = time.Second
	mostWait   = 2 * time.Second // how long a caller waits for an attempt that is in flight
)

// reach paces the attempts of all loops of a process to connect to one database while no attempt succeeds: one
// attempt is in flight at a time, after a pause that grows to a second, and every caller gets its outcome. An attempt
// that takes longer than two seconds, such as one on a connection of the pool that a vanished server never answers,
// does not delay the others: they then connect by themselves. Safe for concurrent use.
type reach struct {
	away atomic.Bool

	mu    sync.Mutex // guards all fields below
	since time.Time
	last  time.Time // last attempt
	pause time.Duration
	err   error    // of the last attempt
	next  *attempt // the attempt that callers wait for, or nil
}

type attempt struct {
	done chan struct{} // closed when err is set
	err  error
}

var reaches sync.Map // values are *reach, by server and database

// reachOf returns the reach of the database that config connects to.
func reachOf(config *pgxpool.Config) *reach {
	c := config.ConnConfig
	// A pool with a wrong password must not make pools with the right one wait.
	where := fmt.Sprintf("%q %d %q %q %q", c.Host, c.Port, c.Database, c.User, c.Password)
	known, _ := reaches.LoadOrStore(where, &reach{})
	return known.(*reach)
}

// note records the result of a caller: after a failed attempt to connect the following callers wait, and a successful
// one ends that.
func (r *reach) note(err error) error {
	var failed *pgconn.ConnectError
	if err == nil {
		if r.away.Load() {
			r.away.Store(false)
		}
		return nil
	}
	if !errors.As(err, &failed) || errors.Is(err, context.Canceled) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away.Load() {
		r.away.Store(true)
		r.since, r.pause = time.Now(), firstPause
	}
	r.last, r.err = time.Now(), err
	return err
}

// await returns at once unless the last attempt to connect has failed. Then it returns nil after an attempt that
// succeeds or takes too long, and the error of a failed one. A caller that waits makes the attempt, with probe.
func (r *reach) await(ctx context.Context, probe func(ctx context.Context) error) error {
	if !r.away.Load() {
		return nil
	}
	r.mu.Lock()
	a, mine := r.next, r.next == nil
	if mine {
		a = &attempt{done: make(chan struct{})}
		r.next = a
	}
	wait := time.Until(r.last.Add(r.pause/2 + rand.N(r.pause/2+1)))
	r.mu.Unlock()
	if mine {
		return r.try(ctx, a, wait, probe)
	}
	enough := time.NewTimer(mostWait)
	defer enough.Stop()
	select {
	case <-a.done:
		return a.err
	case <-enough.C:
		return nil
	case <-ctx.Done():
		return r.told(context.Cause(ctx))
	}
}

var errProbe = errors.New("the attempt to connect ended its goroutine")

// try makes an attempt. The attempt ends even if a hook of the pool panics in it: the others wait for its end.
func (r *reach) try(
	ctx context.Context, a *attempt, wait time.Duration, probe func(context.Context) error,
) (err error) {
	err = errProbe
	defer func() { err = r.tried(ctx, a, err) }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return probe(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tried ends an attempt. If its caller gave up, the attempt has no outcome, and the others get the outcome of the one
// before.
func (r *reach) tried(ctx context.Context, a *attempt, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(a.done)
	r.next = nil
	switch {
	case err == nil:
		r.away.Store(false)
	case ctx.Err() == nil:
		r.last, r.err, r.pause = time.Now(), err, min(2*r.pause, mostPause)
		fallthrough
	default:
		a.err = r.say(r.err)
		return r.say(err)
	}
	return nil
}

func (r *reach) told(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.say(errors.Join(err, r.err))
}

// say wraps err with the time since the last success. The caller holds mu.
func (r *reach) say(err error) error {
	return fmt.Errorf("the database is away since %s: %w", r.since.UTC().Format(time.RFC3339), err)
}
