package bus

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A leased handler whose message has a run gives signs of life for it, since a run of which nothing is heard is sent
// again. Its run is checked when the handler begins, with every extension of the lease, and in the transaction that
// ends the message. A run that is over cancels the handler, and what that sent is not written.

// mostSilence is how long a handler with a run is silent at most, however long its lease is.
const mostSilence = 10 * time.Second

// worker is how this process is called in the attempts of runs.
func (l *leased) worker() string { return fmt.Sprintf("%s/%d", l.bus.session.host, os.Getpid()) }

// beginRun notes that the handler of c begins, and tells whether it may: not when the run is over, or cannot be asked.
// As many handlers as Concurrency allows may ask at once, and somebody may have their runs locked: the connections that
// claim, finish and extend are not for them.
func (l *leased) beginRun(ctx context.Context, c *claimed) bool {
	var a attempts
	a.add(c.delivery.Info.Fire)
	worker := l.worker()
	pipeline := &pgx.Batch{}
	pipeline.Queue(l.bus.sql.Get("open_leased"), l.bound)
	answers := l.bus.queueCheck(pipeline, a, &worker)
	err := l.bus.pool.SendBatch(ctx, pipeline).Close()
	switch {
	case err == nil && (*answers)[0] == runCurrent:
		l.mu.Lock()
		c.beats = true
		l.mu.Unlock()
		if l.options.Lease > beatsPerLease*mostSilence {
			signal(l.beat) // the next beat is due earlier than it was
		}
		return true
	case err == nil:
		c.settleRun((*answers)[0])
		l.end(c)
	case context.Cause(ctx) != nil:
		l.judge(ctx, c, saga.Outcome{Err: err})
	default: // the database is away, or somebody has the run locked: this says nothing about the message
		l.bus.calm.Warn("edda: a batch was rolled back", "endpoint", l.name, "error",
			fmt.Errorf("check a run: %w", explain(err)))
		c.putBack(absentWait, err)
		l.end(c)
	}
	return false
}

// interval is the time between two beats.
func (l *leased) interval() time.Duration {
	every := l.options.Lease / beatsPerLease
	if every <= mostSilence {
		return every
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.held {
		if c.beats {
			return mostSilence
		}
	}
	return every
}

// queueBeats queues the signs of life of those whose handlers have begun. Handlers whose runs are over are told to
// stop.
func (l *leased) queueBeats(pipeline *pgx.Batch, claims []*claimed) {
	var beating []*claimed
	var a attempts
	l.mu.Lock()
	for _, c := range claims {
		if c.beats {
			beating = append(beating, c)
			a.add(c.delivery.Info.Fire)
		}
	}
	l.mu.Unlock()
	if len(beating) == 0 {
		return
	}
	var current []int32
	pipeline.Queue(l.bus.runs.Get("run_beat"), a.runs, a.attempts).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&current); err != nil {
			return err
		}
		is := map[int32]bool{}
		for _, n := range current {
			is[n] = true
		}
		for n, c := range beating {
			if !is[int32(n+1)] {
				l.cancelHandler(c, runIsOver)
			}
		}
		return nil
	})
}

// queueRunCheck is that of a batch, for what a finish has. It asks about every claim, for nobody knows yet which of
// them stand. One that does not settles nothing: another claim of the same message may stand in the same finish.
func (f *finishing) queueRunCheck(pipeline *pgx.Batch) (settle func()) {
	if !f.batch.fired {
		return func() {}
	}
	messages := make([]*message, len(f.claims))
	for n, c := range f.claims {
		messages[n] = &c.message
	}
	lost := func(m *message) bool {
		n := slices.Index(messages, m)
		return !f.won[n]
	}
	return f.batch.bus.queueRunCheck(pipeline, messages, lost)
}

// queueRests says of messages that go back to their queue that nobody has them in hand.
func (f *finishing) queueRests(pipeline *pgx.Batch) {
	var a attempts
	for n, c := range f.claims {
		if f.won[n] && c.run != nil && (c.release || c.fate == again) {
			a.add(c.run)
		}
	}
	if a.len() > 0 {
		pipeline.Queue(f.bus.runs.Get("run_rest"), a.runs, a.attempts)
	}
}
