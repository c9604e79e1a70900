package dispatch

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
)

const (
	cycleManifests = 1000                  // manifests that one cycle loads
	cycleReaps     = 1000                  // runs that one cycle ends
	lockedPause    = 20 * time.Millisecond // before the next cycle, if manifests were locked
	coalesce       = 20 * time.Millisecond // after a cycle that queued something: close due times share the next cycle
)

// cycle is the result of one evaluation.
type cycle struct {
	begun     time.Time // by the database's clock, before the load
	elsewhere bool      // a different server is evaluating
	loaded    int
	reaped    int
	decided   int // manifests with a change to write
	held      int // manifests in decided that no other transaction had locked or changed
	queued    int // runs

	late   []ending   // runs that were reaped
	missed []decision // decisions about manifests whose due times passed without a run
}

var errElsewhere = errors.New("another server is evaluating")

// evaluator turns due manifests into queued runs.
type evaluator struct {
	*core
	lockKey int64
	backoff backoff
	told    map[int64]time.Time // when a manifest was last logged whose due times passed; used by the loop only
	loaded  func()              // set by a test, to act between the load of a cycle and its decision
}

// lockKey returns the key of the advisory lock of a cycle. All programs of a database share such keys, so it is
// derived from a text with its purpose. It never changes.
func lockKey(schema pg.Schema) int64 {
	h := fnv.New64a()
	h.Write([]byte("edda evaluate " + schema.Name()))
	return int64(h.Sum64()) //nolint:gosec // the bits are the key
}

// run runs cycles until ctx ends, or a different server has the lease.
func (e *evaluator) run(ctx context.Context, t lease.Term) error {
	for ctx.Err() == nil {
		wait := run.Jitter(e.options.Evaluate)
		c, err := e.cycle(ctx, t)
		switch {
		case errors.Is(err, lease.ErrFenced):
			return err
		case err != nil && ctx.Err() == nil:
			e.calm.Warn("edda: an evaluation failed, and changed nothing", "error", err)
		case err == nil:
			if c.queued > 0 && c.loaded < cycleManifests {
				_ = run.Sleep(ctx, coalesce)
			}
			wait = min(wait, e.untilDue(ctx, c))
		}
		run.Wait(ctx, wait, e.due)
	}
	return nil
}

// cycle runs one evaluation. All of it commits, or nothing. It does no I/O but SQL, and no manifest waits for
// another.
func (e *evaluator) cycle(ctx context.Context, t lease.Term) (c cycle, err error) {
	err = e.inTx(ctx, t, func(tx pgx.Tx) error {
		alone := false
		if err := tx.QueryRow(ctx, e.sql.Get("try_lock"), e.lockKey).Scan(&alone, &c.begun); err != nil {
			return fmt.Errorf("lock the evaluation cycle: %w", err)
		}
		if !alone {
			return errElsewhere // rolls back
		}
		e.log.Debug("edda: an evaluation cycle begins")
		return e.steps(ctx, tx, &c)
	})
	switch {
	case errors.Is(err, errElsewhere):
		e.log.Debug("edda: another server is evaluating, this cycle is skipped")
		return cycle{elsewhere: true}, nil
	case err != nil:
		return cycle{}, err
	}
	e.tell("edda: a run took longer than the Timeout of its manifest, and is timed out", c.late)
	e.tellMissed(c.missed)
	e.log.Debug("edda: an evaluation cycle is complete", "due", c.loaded, "timed_out", c.reaped, "queued", c.queued)
	if c.queued > 0 {
		e.call(ctx, e.ready, dispatchPayload)
	}
	return c, nil
}

// steps runs the steps of a cycle in their fixed order: load, reap, decide, queue.
func (e *evaluator) steps(ctx context.Context, tx pgx.Tx, c *cycle) error {
	loaded, now, err := e.load(ctx, tx)
	if err != nil {
		return fmt.Errorf("load due manifests: %w", err)
	}
	if e.loaded != nil {
		e.loaded()
	}
	c.loaded = len(loaded)
	if err := e.reapOrSkip(ctx, tx, c); err != nil {
		return err
	}
	decisions := e.decideAll(loaded, now)
	if c.decided = len(decisions); c.decided == 0 {
		return nil
	}
	return e.queue(ctx, tx, decisions, c)
}

// firing is a manifest whose due time has come.
type firing struct {
	id, version int64
	name        string
	due         time.Time
	follows     bool
	definition  []byte
}

func (e *evaluator) load(ctx context.Context, tx pgx.Tx) (loaded []firing, now time.Time, err error) {
	rows, err := tx.Query(ctx, e.sql.Get("load"), cycleManifests, e.backoff.list())
	if err != nil {
		return nil, now, err
	}
	loaded, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f firing, err error) {
		err = row.Scan(&f.id, &f.version, &f.name, &f.due, &f.follows, &f.definition, &now)
		return f, err
	})
	return loaded, now, err
}

// reapOrSkip is reap, but a failure does not keep manifests from firing: a follower of one of the runs may be locked
// for long.
func (e *evaluator) reapOrSkip(ctx context.Context, tx pgx.Tx, c *cycle) error {
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) (err error) {
		c.reaped, c.late, err = e.reap(ctx, point)
		return err
	})
	if err == nil || tx.Conn().IsClosed() || ctx.Err() != nil {
		return err
	}
	c.reaped, c.late = 0, nil
	e.calm.Warn("edda: runs that took too long were not ended", "error", err)
	return nil
}

// untilDue returns how long the next cycle can wait, by the data that this server has read.
func (e *evaluator) untilDue(ctx context.Context, c cycle) time.Duration {
	switch {
	case c.elsewhere:
		return e.options.Evaluate
	case c.reaped > 0, c.loaded == cycleManifests && c.held > 0:
		return 0
	case c.held < c.decided:
		return lockedPause
	}
	return e.untilNext(ctx, e.sql.Get("next_due"), c.begun)
}
