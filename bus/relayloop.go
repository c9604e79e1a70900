package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// relaying is one term of a relay in this process. Its fields belong to the loop.
type relaying struct {
	*Relay
	queue *queue.Queue
	sql   relayStatements
	term  lease.Term
	pool  *pg.Pool
	head  head

	patience *backoff.ExponentialBackOff // with the other side
	database *backoff.ExponentialBackOff // with ours
	failing  map[saga.ID]*failing        // messages that were tried in vain, and are still in the queue
	search   search                      // for the message at which forward fails as a whole
	probing  probing                     // for what goes through behind a stuck message
	warned   time.Time                   // of failures, for the last time
	warnedOf time.Time                   // calls that failed as a whole, for the last time

	most    float64                    // messages of the next turn, see relayunsettled.go
	alone   int                        // times in a row that the settle of a single message was refused
	decided map[queue.Position]verdict // fates that are not written down yet
}

func newRelaying(r *Relay, t lease.Term, pool *pg.Pool) *relaying {
	return &relaying{
		Relay: r, queue: r.endpoint.queue, sql: relayStatementsOf(r.endpoint.queue), term: t, pool: pool,
		database: newPatience(), failing: map[saga.ID]*failing{}, most: float64(r.options.BatchMax),
		decided: map[queue.Position]verdict{}, search: newSearch(r.options.BatchMax),
		patience: backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.options.Retry), backoff.WithMultiplier(2),
			backoff.WithMaxInterval(r.options.RetryMost), backoff.WithMaxElapsedTime(0)),
	}
}

// run takes turns until life ends; a turn that has begun may go on until working does.
func (r *relaying) run(life, working context.Context) error {
	for r.endpoint.alarm.Await(life) {
		for life.Err() == nil && r.awaitResume(life) {
			after, err := r.turn(life, working)
			if working.Err() != nil {
				return nil // cancelled by the drain, or the lease is lost: whoever did it says so
			}
			if err != nil {
				if fatal(err) || errors.Is(err, lease.ErrFenced) {
					return err
				}
				r.calm.Warn("edda: a relay's turn was lost", "endpoint", r.name, "error", err)
				after = rest{wait: r.database.NextBackOff()}
			} else {
				r.database.Reset()
				r.bus.outage.Over()
			}
			if after.idle {
				break
			}
			if after.wait > 0 {
				_ = run.Sleep(life, after.wait) // the loop sees the end of life itself
			}
		}
	}
	return nil
}

// rest is what follows a turn: the next one at once, unless it says otherwise.
type rest struct {
	idle bool          // nothing is due
	wait time.Duration // before the next turn
}

// turn relays the head of the queue: look, forward, settle. When life ends it goes no further than it must.
func (r *relaying) turn(life, working context.Context) (rest, error) {
	batch, err := r.look(working)
	if err != nil {
		r.shrink(0)
		return rest{}, fmt.Errorf("look: %w", pg.Explain(err))
	}
	if len(batch.messages) == 0 {
		if in := r.head.again(time.Now()); in > 0 {
			r.head.fromFront()
			r.endpoint.alarm.WakeAt(time.Now().Add(in))
			return rest{idle: true}, nil
		}
		r.wakeForNext(working)
		return rest{idle: true}, nil
	}
	if batch.unread > 0 && batch.unread == len(batch.messages) { // all of it waits for a newer program
		return rest{wait: min(newerWait, r.options.UnknownFor)}, nil
	}
	if err := r.checkRuns(working, batch); err != nil {
		r.shrink(len(batch.messages))
		return rest{}, err
	}
	r.recall(batch)
	r.carry(life, working, batch)
	if err := r.settle(working, batch); err != nil {
		r.unsettled(batch, err)
		r.shrink(len(batch.messages))
		return rest{}, err
	}
	r.grow()
	r.head.settled(batch.gone(), batch.xmax, batch.clock())
	return rest{wait: batch.wait}, nil
}

// wakeForNext sets the timer for the first message that is not due yet.
func (r *relaying) wakeForNext(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var wait time.Duration
	err := r.pool.QueryRow(ctx, r.queue.SQL("next_due")).Scan(&wait)
	switch {
	case err == nil:
		r.endpoint.alarm.WakeAt(time.Now().Add(wait))
	case !errors.Is(err, pgx.ErrNoRows):
		r.options.Logger.Debug("edda: next due message", "endpoint", r.name, "error", err) // the poll finds it
	}
}

// awaitResume waits while the relay is paused. It tells whether to go on.
func (r *relaying) awaitResume(life context.Context) bool {
	knobs := r.endpoint.knobs
	for {
		changed, now := knobs.changed(), knobs.now()
		r.endpoint.sayKnob(now)
		if !now.Paused {
			return life.Err() == nil
		}
		select {
		case <-changed:
		case <-life.Done():
			return false
		}
	}
}

// followKnob has an idle loop see that somebody turned the knob.
func (r *relaying) followKnob(life context.Context) error {
	for {
		select {
		case <-r.endpoint.knobs.changed():
			r.endpoint.alarm.Wake()
		case <-life.Done():
			return nil
		}
	}
}
