package batch

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

// A batch of a limited endpoint has a permit: a slot of the limit that it holds by a row lock in its own transaction.
// The permit writes no row, so a crash leaves nothing behind, and an endpoint without a limit does not need one.

// queuePermit queues the statement that acquires the permit in the trip of the take, and returns the take that needs
// it.
func (t *taker) queuePermit(pipeline *pgx.Batch) (take string) {
	if !t.engine.Limit.Set.Load() {
		return t.engine.To.Queue.SQL("take")
	}
	t.permit = t.engine.Limit.Store.QueuePermit(pipeline, t.engine.To.Name)
	return t.engine.To.Queue.SQL("take_permitted")
}

// refused reports whether the take got no permit.
func (r report) refused() bool { return r.permit != nil && !*r.permit }

const seekEvery = 50 * time.Millisecond

// awaitPermit waits a short time after a take without a permit. A change of the limit ends the wait. One worker of a
// process waits and tries again; awaitPermit reports whether this is the one. The others are idle, and are woken when
// that worker has found more than it can take.
func (w *worker) awaitPermit(ctx context.Context) (again bool) {
	if !w.engine.pump.seek() {
		return false
	}
	defer w.engine.pump.sought()
	run.Wait(ctx, run.Jitter(seekEvery), w.engine.Limit.Changed)
	return true
}

// seek makes the caller the worker that waits for a permit, unless a worker already does.
func (p *pump) seek() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.seeking
	p.seeking = true
	return first
}

// sought ends the caller's wait, so that the next worker may wait for a permit.
func (p *pump) sought() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seeking = false
}
