package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// worker processes one batch after another. It has a connection only while it works.
type worker struct {
	*Endpoint
	pool  *pgxpool.Pool
	retry *backoff.ExponentialBackOff
	last  batch // its memory serves the next

	idling time.Duration // how long it waited after the last such take
	behind position      // where to go on, after a take that was all for instances of other workers

	suspects []position // that careful batches found, each to be taken alone
	pace     int        // messages of the next careful batch
}

func newWorker(e *Endpoint, pool *pgxpool.Pool) *worker {
	return &worker{Endpoint: e, pool: pool, pace: carefulFirst, retry: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))}
}

// run takes until taking ends; a batch that has begun may go on until work does.
func (w *worker) run(taking, work context.Context) error {
	for w.pump.await(taking) {
		for taking.Err() == nil {
			more, err := w.turn(taking, work)
			if err == nil && !more {
				break
			}
			if err == nil {
				w.retry.Reset()
				continue
			}
			if work.Err() != nil {
				return nil // cancelled by the drain, which says so itself
			}
			if fatal(err) {
				return err
			}
			w.bus.log.Warn("edda: a batch was rolled back", "endpoint", w.name, "error", err)
			if run.Sleep(taking, w.pause(err)) != nil {
				return nil
			}
		}
	}
	return nil
}

// turn processes one batch. It tells whether there may be more to take at once.
func (w *worker) turn(taking, work context.Context) (more bool, err error) {
	conn, err := w.pool.Acquire(work)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	release := w.bus.session.enter(len(w.suspects) > 0)
	o := w.carefully(w.pump.begin(w.behind))
	w.behind = position{}
	b := w.newBatch(conn.Conn())
	r, err := b.process(work, o)
	release()
	w.pump.finish(r)
	w.suspects = append(w.suspects, b.suspects...)
	w.pacing(o, r)
	switch {
	case err != nil:
		return true, err
	case len(w.suspects) > 0 && (r.handled > 0 || !o.alone):
		return true, nil
	case r.taken == 0 && o.after != position{}:
		return true, nil // there was nothing behind our own workers; look at the head
	case r.taken == 0:
		w.wakeForNext(work, conn.Conn())
		return false, nil
	case o.helper && r.useless():
		if !w.stroll(taking) || r.taken < o.limit {
			return false, nil
		}
		w.behind = b.last()
	case r.handled == 0:
		w.pump.park(taking)
	default:
		w.idling = 0
	}
	return true, nil
}

// stroll makes a helper wait whose take was for instances of other workers, longer each time: the others come to
// those messages themselves, and walking over them costs. Then it goes on behind them, where there may be messages
// for somebody else. One of a process does that; it tells whether this worker is the one.
func (w *worker) stroll(ctx context.Context) bool {
	w.idling = min(max(2*w.idling, helpFirst), helpMost)
	if !w.pump.noHelpFor(w.idling) {
		return false
	}
	defer w.pump.strolled()
	_ = run.Sleep(ctx, run.Jitter(w.idling)) // the loop sees the end of ctx itself
	return true
}

// wakeForNext sets the timer for the first message that is not due yet.
func (w *worker) wakeForNext(ctx context.Context, conn *pgx.Conn) {
	var wait time.Duration
	err := conn.QueryRow(ctx, w.queue.nextDue).Scan(&wait)
	switch {
	case err == nil:
		w.pump.wakeAt(time.Now().Add(wait))
	case !errors.Is(err, pgx.ErrNoRows):
		w.bus.log.Debug("edda: next due message", "endpoint", w.name, "error", err) // the poll finds it
	}
}

// pause is how long a worker waits after a batch was lost: not at all when trying again is the remedy.
func (w *worker) pause(err error) time.Duration {
	switch pg.ClassOf(err) {
	case pg.GuardFailed, pg.Race, pg.Busy:
		return run.Jitter(2 * time.Millisecond)
	}
	return w.retry.NextBackOff()
}

// fatal errors need a human: the endpoint stops and says so.
func fatal(err error) bool {
	switch pg.ClassOf(err) {
	case pg.Denied:
		return true
	}
	switch pg.Code(err) {
	case "XX000", "XX001", "XX002": // corruption: do not touch it further
		return true
	}
	return false
}
