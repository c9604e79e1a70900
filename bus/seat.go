package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// A batch of a limited endpoint has a seat: a slot of the limit that it holds by a row lock in its own transaction.
// Nothing is written for it, nothing is left behind by a crash, and an endpoint without a limit does not ask.

// permits is what a process knows of the limit of an endpoint.
type permits struct {
	limited atomic.Bool  // there is one; once true it stays so
	warned  atomic.Int64 // the limit in force that differs from the program's, and was warned of; 0 when none was
	changed run.Nudge    // it has changed, or a slot is free
}

// queueSeat asks for the seat in the trip of the take, and returns the take that heeds it.
func (b *batch) queueSeat(pipeline *pgx.Batch) (take string) {
	if !b.ep.permits.limited.Load() {
		return b.ep.queue.SQL("take")
	}
	b.seat = b.ep.bus.limits.QueuePermit(pipeline, b.ep.name)
	return b.ep.queue.SQL("take_seated")
}

// unseated tells of a take that was not allowed.
func (r report) unseated() bool { return r.seat != nil && !r.seat.Taken }

const seekEvery = 50 * time.Millisecond

// awaitSeat makes a worker wait that has found no seat: a little while, or, when the limit is paused, until the next
// poll. A change of the limit ends the wait. One worker of a process does that, and tries again; it tells whether this
// is the one. The others are idle, and are called when that one has found more than it can take.
func (w *worker) awaitSeat(ctx context.Context, closed bool) (again bool) {
	if !w.pump.seek() {
		return false
	}
	defer w.pump.sought()
	wait := seekEvery
	if closed {
		wait = max(wait, w.options.Poll)
	}
	run.Wait(ctx, run.Jitter(wait), w.permits.changed)
	return true
}

// seek makes the caller the worker that waits for a seat, unless there is one.
func (p *pump) seek() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.seeking
	p.seeking = true
	return first
}

func (p *pump) sought() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seeking = false
}

// findLimit makes the endpoint's limit if it is to have one and has none, and learns whether it has one.
func (e *Endpoint) findLimit(ctx context.Context) error {
	if e.options.ClusterConcurrency > 0 {
		inForce, err := e.bus.limits.Ensure(ctx, e.bus.pool.Writing(), e.name, e.options.ClusterConcurrency)
		if err != nil {
			return pg.Explain(err)
		}
		e.compareLimit(inForce)
		e.permits.limited.Store(true)
		return nil
	}
	return e.lookForLimit(ctx, e.bus.pool)
}

// compareLimit warns, once for each number, where the limit in force is not that of the program: a deploy that changes
// ClusterConcurrency changes nothing in the database.
func (e *Endpoint) compareLimit(inForce int) {
	ours := e.options.ClusterConcurrency
	if inForce == ours || e.permits.warned.Swap(int64(inForce)) == int64(inForce) {
		return
	}
	e.bus.log.Warn("edda: the endpoint's limit is another than its program's", "endpoint", e.name, "limit", inForce,
		"cluster_concurrency", ours,
		"remedy", fmt.Sprintf("edda limit set %s %d", e.name, ours))
}

func (e *Endpoint) lookForLimit(ctx context.Context, db limit.DB) error {
	found, err := e.bus.limits.Exists(ctx, db, e.name)
	if err != nil {
		return fmt.Errorf("find its limit: %w", pg.Explain(err))
	}
	if found && !e.permits.limited.Swap(true) && e.options.Ordered != Unordered {
		e.bus.log.Warn("edda: an ordered endpoint has a limit, which it does not heed", "endpoint", e.name)
	}
	return nil
}

// lookEvery bounds how long an endpoint that had no limit works on without one after its first was set.
const lookEvery = time.Second

// awaitLimit looks for a first limit now and then, so that no batch need look. An endpoint that has one keeps one, so
// that is the end of it.
func (e *Endpoint) awaitLimit(ctx context.Context, db limit.DB) error {
	for !e.permits.limited.Load() {
		if run.Wait(ctx, run.Jitter(lookEvery), e.permits.changed) == run.Ended {
			return nil
		}
		if err := e.lookForLimit(ctx, db); err != nil && ctx.Err() == nil {
			e.bus.log.Debug("edda: limit not looked for", "endpoint", e.name, "error", err) // next time
		}
	}
	return nil
}
