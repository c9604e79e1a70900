package leased

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// extender extends the leases of all messages in hand, three times a lease.
type extender struct {
	*Terms
	claims    *claims
	heartbeat run.Nudge // extend at once
}

// longestSilence is the longest time between two heartbeats of a handler with a run, however long its lease is.
const longestSilence = 10 * time.Second

// run extends leases until ctx ends, which does not interrupt a statement.
func (x *extender) run(ctx context.Context) {
	next := time.Now().Add(run.Jitter(x.interval()))
	for run.Wait(ctx, time.Until(next), x.heartbeat) != run.Ended {
		interval := x.interval()
		next = time.Now().Add(run.Jitter(interval))
		all, err := x.extend(context.WithoutCancel(ctx))
		if err != nil {
			x.To.Calm.Warn("edda: leases were not extended", "endpoint", x.To.Name, "error", err)
		}
		if !all {
			next = time.Now().Add(run.Jitter(interval / 5))
		}
	}
}

// interval returns the time between two extensions, and so between two heartbeats of a run.
func (x *extender) interval() time.Duration {
	every := x.Options.Lease / beatsPerLease
	if every > longestSilence && x.anyBeats() {
		return longestSilence
	}
	return every
}

// extend moves the due of every claim that was not extended lately to the end of a new lease. This process chooses the
// new due, so that it can find a claim after an unknown outcome: at the old place or at the new one.
//
// It does not wait for locks. It skips messages that a finish has in hand, and leaves locked rows for the next time:
// then all is false.
func (x *extender) extend(ctx context.Context) (all bool, err error) {
	x.claims.still.Lock()
	defer x.claims.still.Unlock()
	begun := time.Now()
	claims := x.toExtend(begun, x.interval()/4)
	if len(claims) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.patience())
	defer cancel()
	e := extension{claims: claims, begun: begun}
	e.due = x.claims.clock.at(begun).Add(x.Options.Lease).Truncate(time.Microsecond) // as Postgres stores it
	err = x.send(ctx, &e)
	return x.note(&e, err), err
}

// extension is one statement that extends leases.
type extension struct {
	claims   []*claimed
	begun    time.Time
	due      time.Time    // of the first claim; each further one is due a microsecond later
	extended map[int]bool // by place in claims
	there    map[int]bool // not extended, still ours: a cancel has its row locked
	// lanes that were extended, and lanes that are ours: a lane whose row is locked now is ours and not extended
	lanes, ourLanes      map[string]bool
	lostSlots, busySlots []limit.Slot // slots that belong to a different holder, and slots whose rows are locked now
}

// note notes the extended claims, and gives up claims that are not ours any more. It reports whether every claim was
// extended or given up.
func (x *extender) note(e *extension, err error) (all bool) {
	c := x.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range e.lanes {
		if n := c.lanes[key]; n != nil && n.renewed.Before(e.begun) {
			n.renewed = e.begun
		}
	}
	for n, m := range e.claims {
		moved := e.due.Add(time.Duration(n) * time.Microsecond)
		switch {
		case err != nil:
			m.rows = append(m.rows, moved)
		case m.key != "" && !e.ourLanes[m.key]:
			c.loseNow(m)
		case m.slot != nil && slices.Contains(e.lostSlots, *m.slot):
			c.loseNow(m)
		case e.extended[n]:
			m.rows = []time.Time{moved}
			if m.slot == nil || !slices.Contains(e.busySlots, *m.slot) {
				m.renewed = e.begun
			}
		case !e.there[n]:
			c.loseNow(m)
		}
	}
	return err == nil && len(e.extended) == len(e.claims) && len(e.busySlots) == 0 && len(e.lanes) == len(e.ourLanes)
}

// toExtend lists the claims that were last extended more than age ago, except claims whose rows another statement may
// move. In an ordered endpoint it lists all claims of a lane together and in their order, so that they would come
// back in this order. It lists no claim of a lane that is not trusted any more, because the process stalled: a
// different process is about to look for them where they are.
func (x *extender) toExtend(now time.Time, age time.Duration) (all []*claimed) {
	c := x.claims
	old := now.Add(-age)
	isOld := func(m *claimed) bool { return c.sure(m).Before(old) }
	moving := map[string]bool{} // of lanes
	c.mu.Lock()
	defer c.mu.Unlock()
	all = make([]*claimed, 0, len(c.held))
	for m := range c.held {
		if m.moving {
			moving[m.key] = true
			continue
		}
		all = append(all, m)
	}
	if !x.Options.Ordered {
		return slices.DeleteFunc(all, func(m *claimed) bool { return !isOld(m) })
	}
	all = slices.DeleteFunc(all, func(m *claimed) bool {
		return m.key != "" && (moving[m.key] || !now.Before(c.trusted(m)))
	})
	if !slices.ContainsFunc(all, isOld) {
		return nil
	}
	slices.SortFunc(all, inOrder)
	return all
}

func (x *extender) send(ctx context.Context, e *extension) error {
	conn, err := x.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	if err := x.renewSlots(ctx, conn, e); err != nil {
		return err
	}
	pipeline := x.open()
	x.queueClaims(pipeline, e)
	x.queueLanes(pipeline, e)
	x.queueHeartbeats(pipeline, e.claims)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("extend leases: %w", pgerr.Explain(err))
	}
	return nil
}

// renewSlots renews the slots of the claims.
func (x *extender) renewSlots(ctx context.Context, conn *pgxpool.Conn, e *extension) (err error) {
	slots := slotsOf(e.claims)
	if len(slots) == 0 {
		return nil
	}
	e.lostSlots, e.busySlots, err = x.Limit.Store.Renew(ctx, pg.Conn{Conn: conn.Conn()}, slots, x.Options.Lease)
	if err != nil {
		return fmt.Errorf("renew slots: %w", pgerr.Explain(err))
	}
	return nil
}

// queueClaims queues statements that extend the claims, cancel handlers whose messages were cancelled, and look for
// claims that were not extended.
func (x *extender) queueClaims(pipeline *pgx.Batch, e *extension) {
	e.extended, e.there = map[int]bool{}, map[int]bool{}
	p, again := placesOf(slices.All(e.claims)), placesOf(slices.All(e.claims))
	session := x.session()
	pipeline.Queue(x.To.Queue.SQL("extend"), p.due, p.id, p.number, p.place, session, e.due).Query(
		func(rows pgx.Rows) error {
			for rows.Next() {
				r := pg.CurrentRow(rows)
				n := int(r.Int(0))
				e.extended[n] = true
				if !r.Null(1) {
					x.claims.cancel(e.claims[n], r.Text(1))
				}
				x.claims.clock.note(r.Time(2), e.begun)
			}
			return rows.Err()
		})
	pipeline.Queue(x.To.Queue.SQL("held"), again.due, again.id, again.number, again.place, session).Query(
		func(rows pgx.Rows) error {
			for rows.Next() {
				e.there[int(pg.CurrentRow(rows).Int(0))] = true
			}
			return rows.Err()
		})
}

// queueLanes queues the statement that extends the lanes of the claims.
func (x *extender) queueLanes(pipeline *pgx.Batch, e *extension) {
	e.lanes, e.ourLanes = map[string]bool{}, map[string]bool{}
	keys := keysOf(e.claims)
	if len(keys) == 0 {
		return
	}
	q, owner := x.To.Queue, x.owner
	pipeline.Queue(q.SQL("extend_lanes"), q.ID, texts(keys), owner, e.due).Query(collectKeys(e.lanes))
	pipeline.Queue(q.SQL("lanes_of"), q.ID, texts(keys), owner).Query(collectKeys(e.ourLanes))
}

// queueHeartbeats queues the heartbeats of handlers that run for a manifest. It cancels handlers whose runs have
// ended.
func (x *extender) queueHeartbeats(pipeline *pgx.Batch, claims []*claimed) {
	beating := x.beating(claims)
	if len(beating) == 0 {
		return
	}
	var a runs.Attempts
	for _, m := range beating {
		a.Add(m.msg.Delivery.Info.Firing)
	}
	x.To.Runs.QueueBeat(pipeline, a).QueryRow(func(row pgx.Row) error {
		var current []int32
		if err := row.Scan(&current); err != nil {
			return err
		}
		is := map[int32]bool{}
		for _, n := range current {
			is[n] = true
		}
		for n, m := range beating {
			if !is[int32(n+1)] {
				x.claims.cancel(m, runs.IsOver)
			}
		}
		return nil
	})
}

// beating returns the messages among all whose handlers send heartbeats for their runs.
func (x *extender) beating(all []*claimed) (beating []*claimed) {
	c := x.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		if m.beats {
			beating = append(beating, m)
		}
	}
	return beating
}

// anyBeats reports whether any handler sends heartbeats for a run.
func (x *extender) anyBeats() bool {
	c := x.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.held {
		if m.beats {
			return true
		}
	}
	return false
}

// places are the rows that may hold claims.
type places struct{ due, id, number, place *pg.Array }

// placesOf returns the places of claims. The results name each claim by its number.
func placesOf(claims iter.Seq2[int, *claimed]) places {
	p := places{pg.Timestamps(), pg.UUIDs(), pg.Ints(), pg.Ints()}
	for n, m := range claims {
		for _, at := range m.rows {
			p.due.Time(at)
			p.id.UUID(m.msg.ID)
			p.number.Int(m.number)
			p.place.Int(n)
		}
	}
	return p
}
