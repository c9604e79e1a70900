package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

// worker processes one batch after another. It has a connection only while it works.
type worker struct {
	engine *Engine
	retry  contention.Patience
	last   *batch // the last one: the next batch reuses its memory
	hand   *run.Hand

	conn    *pgxpool.Conn // nil between batches
	order   order         // of the last batch
	release func()        // leaves the session's gate; nil while no batch runs

	idling   time.Duration  // how long it waited after the last such take
	behind   queue.Position // where to take next, after a take that was only for instances of other workers
	poisoned bool           // its last batch was lost, and an error of the database has failed a message
	tries    bool           // it is the worker that tries while the endpoint is slow
	failed   bool           // its last batch had failures and no success

	suspects []queue.Position // suspects that batches in quarantine found, each to be taken alone
	portion  int              // messages of the next batch in quarantine
}

func newWorker(e *Engine) *worker {
	return &worker{engine: e, portion: quarantineFirst, retry: contention.NewPatience(), last: newBatch(e)}
}

// work takes until taking ends; a batch that has begun may continue until work ends. A function of the user may end
// the goroutine, or not return: then a new goroutine takes its place, in the second case with a new worker.
func (e *Engine) work(taking, work context.Context) error {
	w, failed := newWorker(e), error(nil)
	for {
		err, ended := w.run(taking, work, failed)
		switch {
		case ended == nil:
			return err
		case errors.Is(ended, run.ErrLeft):
			w, failed = w.replaced(taking), handlers.ErrLeft
		default:
			w.exited(taking, work)
			failed = handlers.ErrExited
		}
	}
}

// run calls takeAll in a goroutine of its own. ended says how the goroutine has ended, if takeAll has not returned.
// Then exited or replaced releases the resources of the worker. Deferred functions of takeAll do not do that, because
// an abandoned goroutine runs them whenever its function returns.
func (w *worker) run(taking, work context.Context, failed error) (err, ended error) {
	ended = w.engine.To.Options.Calls.Do(func(h *run.Hand) {
		w.hand = h
		err = w.takeAll(taking, work, failed)
	})
	return err, ended
}

// replaced returns the successor of a worker whose goroutine is in a function of the user that does not return, and
// releases that worker's resources. The old goroutine does not use them any more.
func (w *worker) replaced(taking context.Context) *worker {
	w.engine.Options.Hang(w.conn.Hijack())
	w.ended(w.last.left())
	next := newWorker(w.engine)
	next.suspects, next.portion, next.poisoned = w.suspects, w.portion, w.poisoned
	if w.tries {
		w.engine.Breaker.Release(taking, true)
	}
	return next
}

// exited releases the resources of the worker after a function of the user has ended its goroutine.
func (w *worker) exited(taking, work context.Context) {
	if w.release != nil {
		w.ended(w.last.exited(work))
	}
	if w.conn != nil {
		w.free()
	}
	if w.tries {
		w.tries = false
		w.engine.Breaker.Release(taking, w.failed)
	}
}

// free releases the connection to the pool.
func (w *worker) free() {
	w.conn.Release()
	w.conn = nil
}

// takeAll is the loop of a worker's goroutine. failed is the error of the goroutine before it, if there was one.
func (w *worker) takeAll(taking, work context.Context, failed error) error {
	if failed != nil {
		if goesOn, err := w.ranTo(taking, work, failed); !goesOn {
			return err
		}
	}
	for failed != nil || w.engine.pump.Await(taking) {
		failed = nil
		for taking.Err() == nil {
			more, err := w.admitted(taking, work)
			if goesOn, err := w.ranTo(taking, work, err); !goesOn {
				return err
			}
			if err == nil && !more {
				break
			}
		}
	}
	return nil
}

// ranTo notes how a batch has ended, and waits if it was lost to err. It reports whether the worker continues; if
// not, the error is the worker's.
func (w *worker) ranTo(taking, work context.Context, err error) (goesOn bool, _ error) {
	pause := w.retry.After(err)
	switch {
	case err == nil:
		w.engine.Outage.Over()
		return true, nil
	case work.Err() != nil:
		return false, nil // cancelled by the drain, which reports it
	case Fatal(err):
		return false, err
	case errors.Is(err, outcome.ErrRehearsed):
		return true, nil
	}
	w.engine.To.Calm.Warn("edda: a batch was rolled back", "endpoint", w.engine.To.Name, "error", err)
	if w.poisoned {
		return true, nil // at once: an outage that ends just now must not look like the message's fault
	}
	return run.Sleep(taking, pause) == nil, nil
}

// admitted makes a pass once the breaker lets this worker take.
func (w *worker) admitted(taking, work context.Context) (more bool, err error) {
	tries, ok := w.engine.Breaker.Admit(taking)
	if !ok {
		return false, nil
	}
	w.tries, w.failed = tries, false
	more, err = w.pass(taking, work)
	if tries {
		w.tries = false
		w.engine.Breaker.Release(taking, w.failed)
	}
	return more, err
}

// pass processes one batch. It reports whether there may be more to take at once.
func (w *worker) pass(taking, work context.Context) (more bool, err error) {
	w.poisoned = false
	if w.conn, err = w.engine.Pool.Acquire(work); err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	more, err = w.connected(taking, work)
	w.free()
	return more, err
}

// connected is pass after a connection was acquired.
func (w *worker) connected(taking, work context.Context) (more bool, err error) {
	release := w.engine.Session.Enter(len(w.suspects) > 0)
	o := w.engine.pump.begin(w.behind)
	if o.limit == 0 {
		release()
		return false, nil
	}
	o = w.small(o)
	w.behind = queue.Position{}
	if w.tries {
		o.limit = 1
	}
	b := w.last
	b.begin(w.conn.Conn(), w.hand, w.tries)
	w.order, w.release = o, release
	r, away, err := b.around(work, o)
	w.ended(r)
	if away {
		w.last = newBatch(w.engine)
	}
	if err != nil {
		return true, err
	}
	if r.refused() {
		return w.awaitPermit(taking), nil
	}
	w.failed = r.failing
	switch {
	case r.outrun, len(w.suspects) > 0 && (r.Handled > 0 || !o.alone):
		return true, nil
	case r.Taken == 0 && o.after != queue.Position{}:
		return true, nil // there was nothing behind our own workers; take at the head
	case r.Taken == 0:
		w.engine.To.WakeForNext(work, w.conn.Conn(), w.engine.Alarm, b.in.Now)
		return false, nil
	case o.helper && r.useless():
		if !w.backOffHelper(taking) || r.Taken < o.limit {
			return false, nil
		}
		w.behind = b.taker.last()
	case r.Handled == 0:
		w.engine.pump.park(taking)
	default:
		w.idling = 0
	}
	return true, nil
}

// ended notes the end of the last batch.
func (w *worker) ended(r report) {
	w.release()
	w.release = nil
	w.engine.pump.finish(r)
	w.suspects = append(w.suspects, w.last.journal.suspects...)
	w.pacing(w.order, r)
	w.poisoned = w.last.blame.poisoned
}

// backOffHelper makes a helper wait if its take was for instances of other workers, longer each time: the others
// handle those messages themselves, and walking over them costs. Then the helper takes behind them, where there may
// be messages of other instances. One worker of a process does that; backOffHelper reports whether this is the one.
func (w *worker) backOffHelper(ctx context.Context) bool {
	w.idling = min(max(2*w.idling, helpFirst), helpMost)
	if !w.engine.pump.noHelpFor(w.idling) {
		return false
	}
	defer w.engine.pump.backedOff()
	_ = run.Sleep(ctx, run.Jitter(w.idling)) // the loop notices the end of ctx itself
	return true
}

// Fatal reports whether err needs a human: the endpoint stops and returns it.
func Fatal(err error) bool { return !errors.Is(err, errLent) && pgerr.Incurable(err) }
