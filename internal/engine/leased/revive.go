package leased

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sweeper revives the lanes of processes that have died.
//
// A process that dies, or stalls for longer than its leases, leaves lanes behind, and messages that it has claimed in
// them. These become due when its leases end, behind all messages that were due before: their followers are claimed
// first. So no process enters a lane whose owner is dead; it revives the lane. It parks the owner's claimed messages
// in the lane, where the followers are, in order. It puts the first of all back at its place in the queue, and the
// lane waits for it, as a lane waits for the retry of a failed message. From there the lane continues as usual. Each
// process looks for such lanes once per poll.
type sweeper struct {
	*lanes
	conn *pgxpool.Conn
}

const (
	sweepWindow = 1000 // lanes that are read together
	mostWindows = 100  // in one sweep
)

// sweep revives lanes until ctx ends, including lanes that no message tries to enter: there may never be a new
// message of their key.
func (l *lanes) sweep(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(min(l.Options.Poll, l.Options.Lease/beatsPerLease))) == nil {
		if err := l.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			l.To.Calm.Warn("edda: lanes of dead processes were not taken over", "endpoint", l.To.Name, "error", err)
		}
	}
	return nil
}

func (l *lanes) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	conn, err := l.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	s := sweeper{l, conn}
	after := ""
	for range mostWindows {
		stale, last, err := s.stale(ctx, after)
		if err == nil {
			err = s.revive(ctx, stale)
		}
		if err != nil || last == "" {
			return err
		}
		after = last
	}
	return nil
}

// stale reads a window of lanes, without a lock. It returns where the next window begins, or "" after the last one.
func (s *sweeper) stale(ctx context.Context, after string) (stale []string, last string, err error) {
	defer s.rollback(ctx, s.conn.Conn())
	pipeline := s.open()
	pipeline.Queue(s.To.Queue.SQL("stale_lanes"), s.To.Queue.ID, after, sweepWindow).Query(func(rows pgx.Rows) error {
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
	if err := s.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, "", fmt.Errorf("look for lanes of dead processes: %w", pgerr.Explain(err))
	}
	return stale, last, nil
}

// revive revives the lanes among keys whose owners are dead.
func (s *sweeper) revive(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	s.deciding.Lock()
	defer s.deciding.Unlock()
	keys = slices.DeleteFunc(slices.Sorted(slices.Values(keys)), s.has) // we give up our own lanes ourselves
	if len(keys) == 0 {
		return nil
	}
	defer s.rollback(ctx, s.conn.Conn())
	dead, err := s.lockDead(ctx, keys)
	if err != nil || len(dead.keys) == 0 {
		return err
	}
	claims, err := s.inDeadHands(ctx, dead)
	if err != nil {
		return err
	}
	pipeline := &pgx.Batch{}
	for session, some := range claims {
		s.queuePark(pipeline, some, session, len(some))
	}
	s.queueRevival(pipeline, slices.Sorted(maps.Keys(dead.keys)))
	pipeline.Queue("commit")
	err = s.conn.SendBatch(ctx, pipeline).Close()
	if pgerr.ClassOf(err) == pgerr.GuardFailed {
		return nil // the owner is alive, and is extending its claims: left to the next sweep
	}
	if err != nil {
		return fmt.Errorf("revive lanes: %w", pgerr.Explain(err))
	}
	s.Alarm.Wake()
	return nil
}

// orphans are lanes to revive, and the sessions that owned them.
type orphans struct {
	keys     map[string]bool
	sessions map[saga.ID]time.Time // when its first lane ended
}

// lockDead begins a transaction that blocks the claims of other processes, and locks the lanes.
func (s *sweeper) lockDead(ctx context.Context, keys []string) (orphans, error) {
	d := orphans{keys: map[string]bool{}, sessions: map[saga.ID]time.Time{}}
	pipeline := s.open()
	s.queueClaimsLock(pipeline)
	pipeline.Queue(s.To.Queue.SQL("await_lanes"), s.To.Queue.ID, texts(keys))
	pipeline.Queue(s.To.Queue.SQL("dead_lanes"), s.To.Queue.ID, texts(keys)).Query(func(rows pgx.Rows) error {
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
	if err := s.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return d, fmt.Errorf("lock lanes of dead processes: %w", pgerr.Explain(err))
	}
	return d, nil
}

// inDeadHands reads the messages that the sessions have claimed in dead lanes, by session. Messages without a key
// come back by themselves.
func (s *sweeper) inDeadHands(ctx context.Context, d orphans) (map[saga.ID][]*claimed, error) {
	if len(d.sessions) == 0 {
		return nil, nil
	}
	session, since := pg.UUIDs(), pg.Timestamps()
	for id, first := range d.sessions {
		session.UUID(id)
		since.Time(first.Add(-s.Options.Lease))
	}
	pipeline := &pgx.Batch{}
	b := message.NewDecoder(s.To, time.Time{})
	var claims []*claimed
	parked := map[string]time.Time{}
	pipeline.Queue(s.To.Queue.SQL("parked_in"), s.To.Queue.ID, texts(slices.Sorted(maps.Keys(d.keys)))).
		Query(collectParked(parked))
	pipeline.Queue(s.To.Queue.SQL("in_dead_hands"), session, since, s.Options.Lease.Microseconds(),
		s.session(), s.Session.Trusts()).Query(readClaims(b, &claims))
	if err := s.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("look for claims of dead processes: %w", pgerr.Explain(err))
	}
	s.decode(b, claims)
	clearFollowers(claims, parked)
	found := map[saga.ID][]*claimed{}
	for _, m := range claims {
		if d.keys[m.key] {
			found[m.death.session] = append(found[m.death.session], m)
		}
	}
	return found, nil
}
