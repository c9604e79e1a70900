package bus

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A process believes in a claim for nine tenths of a lease, counted from before the last statement that is known to
// have extended it. Then it gives the claim up, and the handler's context ends, before the database gives the message
// to anybody else. That needs neither the database nor a lock that somebody holds who waits for the database: what
// keeps a process from extending its leases must not keep it from giving them up.

const trustMargin = 10 // a lease is trusted for all but this part of it

// trustedFor is how long a claim is believed in after the last extension.
func (l *leased) trustedFor() time.Duration { return l.options.Lease - l.options.Lease/trustMargin }

// patience bounds what a transaction of this endpoint waits for: a lock, or the next statement of a process that stands
// still. Leases are extended as often, so nobody else's lease ends for it.
func (l *leased) patience() time.Duration { return min(commitTimeout, l.options.Lease/beatsPerLease) }

// queueOpen begins a transaction that keeps others waiting for no longer than patience.
func (l *leased) queueOpen(pipeline *pgx.Batch) {
	pipeline.Queue(begin)
	pipeline.Queue(l.bus.sql.Get("open_leased"), l.bound)
}

// trusted is until when the claim is surely ours, and its lane with it: the database counts from a later moment than we
// do. The caller holds mu.
func (l *leased) trusted(c *claimed) time.Time { return l.sure(c).Add(l.trustedFor()) }

// sure is the moment before the last statement that extended both the claim and its lane. The caller holds mu.
func (l *leased) sure(c *claimed) time.Time {
	if n := l.lanes[c.key]; n != nil && n.renewed.Before(c.renewed) {
		return n.renewed
	}
	return c.renewed
}

// distrustAll gives up what this process cannot be sure of any more, until all is finished.
func (l *leased) distrustAll(context.Context) error {
	for {
		timer := time.NewTimer(time.Until(l.distrust(time.Now())))
		select {
		case <-l.finished:
			timer.Stop()
			return nil
		case <-l.sooner:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// distrust gives up the claims whose lease may be over at now, and returns when to look again. A message that a finish
// has in hand stays: its handler has returned, and the database knows whether the claim stands.
func (l *leased) distrust(now time.Time) (next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = now.Add(l.trustedFor())
	for c := range l.held {
		if c.moving {
			continue
		}
		if until := l.trusted(c); !now.Before(until) {
			l.loseNow(c)
		} else if until.Before(l.watched) {
			l.watched = until
		}
	}
	return l.watched
}

// watch has distrust look earlier, when c cannot be trusted for as long as it wants to wait. The caller holds mu.
func (l *leased) watch(c *claimed) {
	if _, ours := l.held[c]; ours && l.trusted(c).Before(l.watched) {
		signal(l.sooner)
	}
}

// keepStill keeps extensions away from the rows of claims until release is called, and waits for the one that is on its
// way. So a statement finds a row where its claim says.
func (l *leased) keepStill(claims []*claimed) (release func()) {
	l.extending.Lock()
	defer l.extending.Unlock()
	l.setMoving(claims, true)
	return func() { l.setMoving(claims, false) }
}

func (l *leased) setMoving(claims []*claimed, moving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		if c.moving = moving; !moving {
			l.watch(c)
		}
	}
}

// tellAll tells of claims that were lost, until Run ends. Nothing else waits for it: it calls users' functions.
func (l *leased) tellAll(ctx context.Context) error {
	for {
		select {
		case <-l.losses:
			l.tell()
		case <-ctx.Done():
			l.tell()
			return nil
		}
	}
}
