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

const (
	beatsPerLease = 3
	trustMargin   = 10 // a lease is trusted for all but this part of it
)

// extendAll extends the leases of everything that is held, three times a lease, until the endpoint is closed and all is
// finished. Between two beats it gives up what it cannot be sure of any more.
func (l *leased) extendAll(ctx context.Context) error {
	next := time.Now().Add(run.Jitter(l.interval()))
	for {
		wait := min(time.Until(next), time.Until(l.trustEnds()))
		timer := time.NewTimer(max(wait, 0))
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
			if err := l.extend(ctx); err != nil {
				l.bus.log.Warn("edda: leases were not extended", "endpoint", l.name, "error", err)
				next = time.Now().Add(run.Jitter(interval / 5))
			}
		}
		l.distrust()
		l.tell()
	}
}

// trusted is until when the claim is surely ours: the database counts the lease from a later moment than we do.
func (l *leased) trusted(c *claimed) time.Time {
	return c.renewed.Add(l.options.Lease - l.options.Lease/trustMargin)
}

func (l *leased) trustEnds() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := time.Now().Add(l.options.Lease)
	for c := range l.held {
		if t := l.trusted(c); t.Before(first) {
			first = t
		}
	}
	return first
}

// distrust gives up claims whose lease may be over, whatever the database would say if it answered.
func (l *leased) distrust() {
	now := time.Now()
	for _, c := range l.snapshot() {
		if !now.Before(l.trusted(c)) {
			l.lose(c)
		}
	}
}

func (l *leased) snapshot() []*claimed {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*claimed, 0, len(l.held))
	for c := range l.held {
		all = append(all, c)
	}
	return all
}

// extend moves the due of every claim that was not extended lately to the end of a new lease. The new due is chosen here, so
// that a claim can be found when the outcome is unknown: at the old place or at the new one.
func (l *leased) extend(ctx context.Context) error {
	l.rows.Lock()
	defer l.rows.Unlock()
	claims := l.toExtend()
	if len(claims) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.options.Lease/beatsPerLease)
	defer cancel()
	x := extension{claims: claims, begun: time.Now()}
	x.due = l.clockNow(x.begun).Add(l.options.Lease).Truncate(time.Microsecond) // as Postgres keeps it
	err := l.sendExtension(ctx, &x)
	for n, c := range claims {
		moved := x.due.Add(time.Duration(n) * time.Microsecond)
		switch {
		case err != nil:
			c.rows = append(c.rows, moved)
		case c.key != "" && !x.lanes[c.key]:
			l.lose(c)
		case c.slot != nil && x.lostSlots[*c.slot]:
			l.lose(c)
		case x.extended[n]:
			c.rows = []time.Time{moved}
			if c.slot == nil || !x.busySlots[*c.slot] {
				c.renewed = x.begun
			}
		case !x.there[n]:
			l.lose(c)
		}
	}
	return err
}

// extension is one statement that extends leases.
type extension struct {
	claims               []*claimed
	begun                time.Time
	due                  time.Time           // of the first; each other one is a microsecond after the one before
	extended             map[int]bool        // by place in claims
	lanes                map[string]bool     // extended
	lostSlots, busySlots map[limit.Slot]bool // somebody else's, and locked at this moment
	there                map[int]bool        // not extended and still ours: its row is locked at this moment, by somebody who cancels it
}

// toExtend lists the claims that are older than half a beat. In an ordered endpoint all are extended together and in their
// order, so that they would come back in it.
func (l *leased) toExtend() []*claimed {
	old := time.Now().Add(-l.interval() / 2)
	isOld := func(c *claimed) bool { return c.renewed.Before(old) }
	all := l.snapshot()
	if l.options.Ordered == Unordered {
		return slices.DeleteFunc(all, func(c *claimed) bool { return !isOld(c) })
	}
	if !slices.ContainsFunc(all, isOld) {
		return nil
	}
	slices.SortFunc(all, byTurn)
	return all
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
	pipeline.Queue(begin)
	pipeline.Queue(l.bus.sql.Get("open"))
	pipeline.Queue(l.queue.sql("extend"), p.due, p.id, p.number, p.place, [16]byte(l.session()), x.due).Query(func(rows pgx.Rows) error {
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
	pipeline.Queue(l.queue.sql("held"), again.due, again.id, again.number, again.place, [16]byte(l.session())).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			x.there[int(pg.CurrentRow(rows).Int(0))] = true
		}
		return rows.Err()
	})
	x.lanes = map[string]bool{}
	if keys := keysOf(x.claims); len(keys) > 0 {
		pipeline.Queue(l.bus.sql.Get("extend_lanes"), l.queue.id, texts(keys), [16]byte(l.owner), x.due).Query(collectKeys(x.lanes))
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
