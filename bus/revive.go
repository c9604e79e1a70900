package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A process that dies, or stands still for longer than its leases, leaves lanes behind, and messages that it has
// claimed in them. These are due when its leases end, behind everything that was due before: their followers are
// claimed first. So a lane of a dead process is not entered, it is revived. What the process had claimed in it is
// parked, where the followers are, in the order of their turns; the first of all goes back to its turn at the head of
// the queue, and the lane waits for it as it waits for the retry of a message that failed. From there everything goes
// its usual way. Each process looks for such lanes once a poll.

const (
	sweepWindow = 1000 // lanes that are looked at together
	mostWindows = 100  // in one sweep
)

// sweepLanes revives lanes, also those that nobody asks for: no new message of their key may ever come.
func (l *leased) sweepLanes(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(min(l.options.Poll, l.options.Lease/beatsPerLease))) == nil {
		if err := l.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			l.bus.calm.Warn("edda: lanes were not swept", "endpoint", l.name, "error", err)
		}
	}
	return nil
}

func (l *leased) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	after := ""
	for range mostWindows {
		stale, last, err := l.staleLanes(ctx, conn, after)
		if err == nil {
			err = l.reviveLanes(ctx, conn, stale)
		}
		if err != nil || last == "" {
			return err
		}
		after = last
	}
	return nil
}

// staleLanes looks at a window of lanes, with no lock. It returns where the next window begins, "" after the last one.
func (l *leased) staleLanes(ctx context.Context, conn *pgxpool.Conn, after string) (stale []string, last string,
	err error) {
	b := &batch{Endpoint: l.Endpoint, conn: conn.Conn()}
	defer b.abandon(ctx)
	pipeline := &pgx.Batch{}
	l.queueOpen(pipeline)
	pipeline.Queue(l.queue.sql("stale_lanes"), l.queue.id, after, sweepWindow).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			if r.Bool(1) {
				stale = append(stale, r.Text(0))
			}
			if r.Int(2) == sweepWindow {
				last = r.Text(0)
			}
		}
		return rows.Err()
	})
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, "", fmt.Errorf("look for lanes of dead processes: %w", explain(err))
	}
	return stale, last, nil
}

// reviveLanes revives those of the lanes whose owners are gone.
func (l *leased) reviveLanes(ctx context.Context, conn *pgxpool.Conn, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	l.rows.Lock()
	defer l.rows.Unlock()
	keys = slices.DeleteFunc(slices.Sorted(slices.Values(keys)), l.inLane) // what we still have, we give up ourselves
	if len(keys) == 0 {
		return nil
	}
	b := &batch{Endpoint: l.Endpoint, conn: conn.Conn()}
	defer b.abandon(ctx)
	dead, err := l.lockDead(ctx, conn, keys)
	if err != nil || len(dead.keys) == 0 {
		return err
	}
	claims, err := l.inDeadHands(ctx, conn, b, dead)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	for session, some := range claims {
		l.queuePark(pipeline, some, session, len(some))
	}
	l.queueRevival(pipeline, slices.Sorted(maps.Keys(dead.keys)))
	pipeline.Queue("commit")
	err = conn.SendBatch(ctx, pipeline).Close()
	if pg.ClassOf(err) == pg.GuardFailed {
		return nil // its owner is not dead, and extends its claims at this moment: the next sweep will see
	}
	if err != nil {
		return fmt.Errorf("revive lanes: %w", explain(err))
	}
	l.pump.wake()
	return nil
}

// orphans are lanes to revive, and the sessions that had them.
type orphans struct {
	keys     map[string]bool
	sessions map[saga.ID]time.Time // when the first of its lanes ended
}

// lockDead begins a transaction in which nobody else claims, and locks the lanes.
func (l *leased) lockDead(ctx context.Context, conn *pgxpool.Conn, keys []string) (orphans, error) {
	d := orphans{keys: map[string]bool{}, sessions: map[saga.ID]time.Time{}}
	pipeline := &pgx.Batch{}
	l.queueOpen(pipeline)
	l.queueClaimsLock(pipeline)
	pipeline.Queue(l.bus.sql.Get("await_lanes"), l.queue.id, texts(keys))
	pipeline.Queue(l.queue.sql("dead_lanes"), l.queue.id, texts(keys)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			d.keys[r.Text(0)] = true
			if r.Null(1) {
				continue
			}
			session, until := r.UUID(1), r.Time(2)
			if first, known := d.sessions[session]; !known || until.Before(first) {
				d.sessions[session] = until
			}
		}
		return rows.Err()
	})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return d, fmt.Errorf("lock lanes of dead processes: %w", explain(err))
	}
	return d, nil
}

// inDeadHands reads what the sessions have claimed in dead lanes, by session. What has no key comes back by itself.
func (l *leased) inDeadHands(ctx context.Context, conn *pgxpool.Conn, b *batch, d orphans) (map[saga.ID][]*claimed,
	error) {
	if len(d.sessions) == 0 {
		return nil, nil
	}
	session, since := pg.UUIDs(), pg.Timestamps()
	for id, first := range d.sessions {
		session.UUID(id)
		since.Time(first.Add(-l.options.Lease))
	}
	pipeline := &pgx.Batch{}
	var claims []*claimed
	parked := map[string]time.Time{}
	pipeline.Queue(l.bus.sql.Get("parked_in"), l.queue.id, texts(slices.Sorted(maps.Keys(d.keys)))).Query(
		collectTurns(parked))
	pipeline.Queue(l.queue.sql("in_dead_hands"), session, since, l.options.Lease.Microseconds(), [16]byte(l.session()),
		l.bus.session.trusts()).Query(func(rows pgx.Rows) error {
		claims = collectClaims(rows, b)
		return rows.Err()
	})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("look for what dead processes have claimed: %w", explain(err))
	}
	l.decodeInOrder(b, claims)
	acquitFollowers(claims, parked)
	found := map[saga.ID][]*claimed{}
	for _, c := range claims {
		if d.keys[c.key] {
			found[c.before] = append(found[c.before], c)
		}
	}
	return found, nil
}

// queueRevival queues what makes lanes wait for the first message that is parked in them.
func (l *leased) queueRevival(pipeline *pgx.Batch, keys []string) {
	if len(keys) > 0 {
		pipeline.Queue(l.queue.sql("revive_lanes"), l.queue.id, texts(keys))
	}
}
