package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const beatsPerLease = 3

// extendAll extends the leases of everything that is held, three times a lease, until the endpoint is closed and all is
// finished.
func (l *leased) extendAll(ctx context.Context) error {
	next := time.Now().Add(run.Jitter(l.interval()))
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-l.finished:
			timer.Stop()
			return nil
		case <-l.beat:
			next = time.Now()
		case <-timer.C:
		}
		timer.Stop()
		if !time.Now().Before(next) {
			interval := l.interval()
			next = time.Now().Add(run.Jitter(interval))
			all, err := l.extend(ctx)
			if err != nil {
				l.bus.calm.Warn("edda: leases were not extended", "endpoint", l.name, "error", err)
			}
			if !all {
				next = time.Now().Add(run.Jitter(interval / 5))
			}
		}
	}
}

// extend moves the due of every claim that was not extended lately to the end of a new lease. The new due is chosen
// here, so that a claim can be found when the outcome is unknown: at the old place or at the new one.
//
// It waits for nobody. What a finish has in hand is passed over, and what somebody has locked is left for the next
// time: then all is false.
func (l *leased) extend(ctx context.Context) (all bool, err error) {
	l.extending.Lock()
	defer l.extending.Unlock()
	begun := time.Now()
	claims := l.toExtend(begun)
	if len(claims) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	x := extension{claims: claims, begun: begun}
	x.due = l.clockNow(x.begun).Add(l.options.Lease).Truncate(time.Microsecond) // as Postgres keeps it
	err = l.sendExtension(ctx, &x)
	return l.settleExtension(&x, err), err
}

// settleExtension notes what was extended, and gives up what is not ours any more. It reports whether nothing was left
// for the next time.
func (l *leased) settleExtension(x *extension, err error) (all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range x.lanes {
		if n := l.lanes[key]; n != nil && n.renewed.Before(x.begun) {
			n.renewed = x.begun
		}
	}
	for n, c := range x.claims {
		moved := x.due.Add(time.Duration(n) * time.Microsecond)
		switch {
		case err != nil:
			c.rows = append(c.rows, moved)
		case c.key != "" && !x.ourLanes[c.key]:
			l.loseNow(c)
		case c.slot != nil && x.lostSlots[*c.slot]:
			l.loseNow(c)
		case x.extended[n]:
			c.rows = []time.Time{moved}
			if c.slot == nil || !x.busySlots[*c.slot] {
				c.renewed = x.begun
			}
		case !x.there[n]:
			l.loseNow(c)
		}
	}
	return err == nil && len(x.extended) == len(x.claims) && len(x.busySlots) == 0 && len(x.lanes) == len(x.ourLanes)
}

// extension is one statement that extends leases.
type extension struct {
	claims   []*claimed
	begun    time.Time
	due      time.Time    // of the first; each other one is a microsecond after the one before
	extended map[int]bool // by place in claims
	// extended, and ours: one that is locked at this moment is ours and not extended
	lanes, ourLanes      map[string]bool
	lostSlots, busySlots map[limit.Slot]bool // somebody else's, and locked at this moment
	// not extended and still ours: its row is locked at this moment, by somebody who cancels it
	there map[int]bool
}

// toExtend lists the claims that are older than a quarter of a beat, except those whose rows another statement may
// move. In an ordered endpoint all of a lane are extended together and in their order, so that they would come back in
// it, and not when the process stood still: another one is about to look for them where they are.
func (l *leased) toExtend(now time.Time) (claims []*claimed) {
	old := now.Add(-l.interval() / 4)
	isOld := func(c *claimed) bool { return l.sure(c).Before(old) }
	moving := map[string]bool{} // lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	claims = make([]*claimed, 0, len(l.held))
	for c := range l.held {
		if c.moving {
			moving[c.key] = true
			continue
		}
		claims = append(claims, c)
	}
	if l.options.Ordered == Unordered {
		return slices.DeleteFunc(claims, func(c *claimed) bool { return !isOld(c) })
	}
	claims = slices.DeleteFunc(claims, func(c *claimed) bool {
		return c.key != "" &&
			(moving[c.key] || !now.Before(l.trusted(c)))
	})
	if !slices.ContainsFunc(claims, isOld) {
		return nil
	}
	slices.SortFunc(claims, byTurn)
	return claims
}

func (l *leased) sendExtension(ctx context.Context, x *extension) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	if x.lostSlots, x.busySlots, err = l.renewSlots(ctx, conn, x.claims); err != nil {
		return err
	}
	x.extended, x.there = map[int]bool{}, map[int]bool{}
	p, again := placesOf(x.claims), placesOf(x.claims)
	pipeline := &pgx.Batch{}
	l.queueOpen(pipeline)
	pipeline.Queue(l.queue.sql("extend"), p.due, p.id, p.number, p.place, [16]byte(l.session()),
		x.due).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			n := int(r.Int(0))
			x.extended[n] = true
			if !r.Null(1) {
				l.cancelHandler(x.claims[n], r.Text(1))
			}
			l.noteClock(r.Time(2), x.begun)
		}
		return rows.Err()
	})
	pipeline.Queue(l.queue.sql("held"), again.due, again.id, again.number, again.place,
		[16]byte(l.session())).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			x.there[int(pg.CurrentRow(rows).Int(0))] = true
		}
		return rows.Err()
	})
	x.lanes, x.ourLanes = map[string]bool{}, map[string]bool{}
	if keys := keysOf(x.claims); len(keys) > 0 {
		pipeline.Queue(l.bus.sql.Get("extend_lanes"), l.queue.id, texts(keys), [16]byte(l.owner),
			x.due).Query(collectKeys(x.lanes))
		pipeline.Queue(l.bus.sql.Get("lanes_of"), l.queue.id, texts(keys),
			[16]byte(l.owner)).Query(collectKeys(x.ourLanes))
	}
	l.queueBeats(pipeline, x.claims)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("extend leases: %w", explain(err))
	}
	return nil
}

// places are where claims may be found.
type places struct{ due, id, number, place *pg.Array }

func placesOf(claims []*claimed) places {
	p := places{pg.Timestamps(), pg.UUIDs(), pg.Ints(), pg.Ints()}
	for n, c := range claims {
		for _, at := range c.rows {
			p.due.Time(at)
			p.id.UUID(c.id)
			p.number.Int(c.number)
			p.place.Int(n)
		}
	}
	return p
}
