package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// giveUpAfter is how long the last finishes of a Run are tried. What is not finished then is taken again when its lease
// has ended.
const giveUpAfter = 10 * time.Second

// asideEvery is after how many times patience a message that others waited for is tried again while there always are
// others. Each try may take as long as patience.
const asideEvery = 3

// finishAll ends messages whose handlers have ended, until no more can come. What ends while a transaction is on its
// way goes with the next.
func (l *leased) finishAll(ctx context.Context) error {
	defer close(l.finished)
	retry := newPatience()
	most := l.options.BatchMax
	var deadline time.Time
	for {
		claims, last := l.takeEnded(most)
		if len(claims) == 0 && last {
			return nil
		}
		if len(claims) == 0 {
			l.awaitEnded()
			continue
		}
		if last && deadline.IsZero() {
			deadline = time.Now().Add(giveUpAfter)
		}
		err := l.finish(ctx, claims)
		if err == nil {
			retry.Reset()
			most = min(2*most, l.options.BatchMax)
			continue
		}
		most = l.blameFinish(claims, err)
		if errors.Is(err, errRehearsed) {
			continue
		}
		l.bus.calm.Warn("edda: a finish was rolled back", "endpoint", l.name, "error", err)
		if fatal(err) || last && time.Now().After(deadline) {
			return fmt.Errorf("finish messages: %w", err)
		}
		if len(claims) == 1 && claims[0].success != nil {
			continue // at once: an outage that ends just now must not look like the message's doing
		}
		_ = run.Sleep(ctx, pause(err, retry)) // this context never ends
	}
}

func (l *leased) awaitEnded() {
	select {
	case <-l.over:
	case <-l.closed:
	}
}

// takeEnded takes up to most messages that are to be finished, and reports whether no more can come. Those that others
// waited for come last, one at a time, and now and then also where there always are others.
func (l *leased) takeEnded(most int) (claims []*claimed, last bool) {
	select {
	case <-l.closed:
		last = true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first, n := 0, min(most, len(l.ended))
	if slices.ContainsFunc(l.ended, isAside) {
		slices.SortStableFunc(l.ended, asideLast)
		aside := slices.IndexFunc(l.ended, isAside)
		if n = min(n, aside); n == 0 || time.Since(l.asideTried) >= asideEvery*l.patience() {
			first, n, l.asideTried = aside, 1, time.Now()
		}
	}
	claims = slices.Clone(l.ended[first : first+n])
	l.ended = slices.Delete(l.ended, first, first+n)
	signal(l.room)
	return claims, last
}

func isAside(c *claimed) bool { return c.aside }

func asideLast(a, b *claimed) int {
	switch {
	case a.aside == b.aside:
		return 0
	case a.aside:
		return 1
	}
	return -1
}

// blameFinish puts the messages of a finish that failed back in front, and says how many to try next: fewer, until a
// message that cannot be finished is alone.
func (l *leased) blameFinish(claims []*claimed, err error) (most int) {
	class := pg.ClassOf(err)
	if class == pg.GuardFailed || class == pg.Unprepared {
		l.bus.routes.forget()
	}
	if len(claims) == 1 {
		l.blameClaim(claims[0], class, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := make([]*claimed, 0, len(claims)+len(l.ended))
	for _, c := range claims {
		if _, ours := l.held[c]; ours {
			kept = append(kept, c)
		}
	}
	alone := len(claims) == 1 && errors.Is(err, context.DeadlineExceeded) && claims[0].success == nil
	// it waits for a lock, or takes too long: the others, and the next ones, go before it
	if class == pg.Busy || alone {
		for _, c := range kept {
			c.aside, l.asideTried = true, time.Now()
		}
		l.ended, kept = append(l.ended, kept...), nil
	}
	if class == pg.Busy || errors.Is(err, context.DeadlineExceeded) {
		signal(l.beat) // their leases were not extended meanwhile
	}
	l.ended = append(kept, l.ended...)
	if guilty(class, err) || doubtful(class, err) {
		return max(1, len(claims)/2)
	}
	return len(claims)
}

// blameClaim makes a failure of the success of a handler that cannot be written: at once when the server refuses what
// is in it, and after some times when that could also be a database in trouble. When the failure cannot be written
// either, it is the database, and the success is back. A connection that is lost says nothing of a message: its
// transaction runs no handler.
func (l *leased) blameClaim(c *claimed, class pg.Class, err error) {
	switch {
	case errors.Is(err, errRehearsed): // one more time, which decides
		c.message, c.success = *c.success, nil
		c.troubles++
	case c.success != nil:
		c.message, c.success, c.troubles = *c.success, nil, 0
	case guilty(class, err):
		c.batch.fail(&c.message, err)
	case c.fate == done && doubtful(class, err) && class != pg.Lost && c.counts(err, time.Now()):
		if c.troubles++; c.troubles > freeTroubles {
			success := c.message
			c.batch.fail(&c.message, err)
			c.success = &success
		}
	}
}

// counts reports whether a finish of c alone that failed counts against it. A finish ends after a part of the lease,
// and a database that is slow for a while lets one after another end so. So time-outs count once in commitTimeout, as
// if each had been given that long.
func (c *claimed) counts(err error, now time.Time) bool {
	if !errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if now.Sub(c.timedOut) < commitTimeout {
		return false
	}
	c.timedOut = now
	return true
}

// finish ends messages in one transaction with what follows from them: each is deleted where our claim on it still
// stands, and what belongs to a message whose claim is lost is not written. When nothing but the deletion is to be
// written it goes with the COMMIT in one trip.
func (l *leased) finish(ctx context.Context, claims []*claimed) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	f, err := l.commitFinish(ctx, claims)
	if err != nil {
		return err
	}
	l.callWaiting(ctx, f)
	f.batch.after(ctx)
	l.failing(f.batch.report(nil))
	return nil
}

// commitFinish is the part of finish that moves rows. What follows the commit runs users' functions, and nobody waits
// for them.
func (l *leased) commitFinish(ctx context.Context, claims []*claimed) (*finishing, error) {
	l.rows.Lock()
	defer l.rows.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	defer l.keepStill(claims)()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	f := l.newFinish(conn.Conn(), claims)
	if err := f.commit(ctx); err != nil {
		f.batch.abandon(ctx)
		for _, c := range claims {
			c.tried = c.tried || f.sent
		}
		return nil, err
	}
	l.settle(f)
	return f, nil
}

// commit is the transaction.
func (f *finishing) commit(ctx context.Context) error {
	if err := f.recheck(ctx); err != nil {
		return err
	}
	if err := f.lockRights(ctx); err != nil {
		return err
	}
	f.sent = !f.writes
	if err := f.end(ctx); err != nil || !f.writes {
		return err
	}
	f.planLanes()
	if f.strayed() {
		return errLaneLost // this process has lost the lane since end looked, and the next try knows
	}
	f.batch.also = f.queueRights
	f.sent = !f.batch.rehearses
	return f.write(ctx)
}

// finishing is one such transaction.
type finishing struct {
	*leased
	claims []*claimed
	won    []bool
	batch  *batch // of those that won
	writes bool   // more than deletions is to be written
	sent   bool   // the COMMIT was, so that an error leaves its outcome unknown
	lanes  lanePlan
	slots  map[limit.Slot]bool // those that are ours, and stay so until our COMMIT
	freed  *limit.Released
}

func (l *leased) newFinish(conn *pgx.Conn, claims []*claimed) *finishing {
	f := &finishing{leased: l, claims: claims, won: make([]bool, len(claims))}
	f.batch = &batch{Endpoint: l.Endpoint, conn: conn, ended: true}
	f.writes = f.guarded()
	f.batch.rehearses = len(claims) == 1 && claims[0].success != nil && claims[0].troubles == freeTroubles+1
	for _, c := range claims {
		f.batch.failures += c.failures
		if c.failure != nil {
			f.batch.failure = c.failure
		}
		if c.pauses {
			f.batch.pausing = &c.message
		}
		f.batch.fired = f.batch.fired || c.fired
		f.writes = f.writes || c.fired || !c.release && (c.fate != done || len(c.out) > 0)
	}
	return f
}

// recheck makes failures of what cannot be written: what an earlier finish was refused for, and what has nowhere to go
// any more, because a queue was dropped since the handler ended.
func (f *finishing) recheck(ctx context.Context) error {
	known, err := f.bus.routes.get(ctx, f.batch.conn)
	if err != nil {
		return err
	}
	for _, c := range f.claims {
		if err := f.memory.verdict(c.id); err != nil && c.fate == done {
			c.batch.fail(&c.message, err)
			f.writes = true
		}
		for n := range c.out {
			out := &c.out[n]
			if out.Info.Intent == saga.Event && out.To == "" {
				continue
			}
			if _, err := f.batch.queuesFor(known, out, false); err != nil {
				c.batch.fail(&c.message, err)
				f.writes = true
				break
			}
		}
	}
	return nil
}

// end deletes what is finished and puts back what is released, where the claims stand.
func (f *finishing) end(ctx context.Context) error {
	var deleted, released []*claimed
	var deletedAt, releasedAt []int
	for n, c := range f.claims {
		switch {
		// the right is lost, and the claim with it
		case c.key != "" && !f.lanes.held[c.key] || c.slot != nil && !f.slots[*c.slot]:
		case f.isStray(c):
		case c.release && c.key != "": // it is parked again, see planLanes
			f.won[n] = true
		case c.release:
			released, releasedAt = append(released, c), append(releasedAt, n)
		default:
			deleted, deletedAt = append(deleted, c), append(deletedAt, n)
		}
	}
	pipeline := &pgx.Batch{}
	if !f.guarded() {
		f.batch.begun = time.Now()
		f.queueOpen(pipeline)
	}
	owner := [16]byte(f.leased.session())
	if len(deleted) > 0 {
		p := placesOf(deleted)
		pipeline.Queue(f.queue.sql("finish"), p.due, p.id, p.number, p.place, owner).Query(f.collect(deletedAt))
	}
	if len(released) > 0 {
		p := placesOf(released)
		pipeline.Queue(f.queue.sql("release"), p.due, p.id, p.number, p.place, owner).Query(f.collect(releasedAt))
	}
	settleRuns := f.queueRunCheck(pipeline)
	if !f.writes {
		pipeline.Queue("commit")
	}
	if pipeline.Len() == 0 {
		return nil
	}
	if err := f.batch.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("finish: %w", explain(err))
	}
	settleRuns()
	for n, c := range f.claims {
		if f.won[n] && !c.release {
			f.batch.messages = append(f.batch.messages, &c.message)
		}
	}
	return nil
}

// collect notes the places of the claims that stood. A message whose handler failed before it was told of a cancel is
// not tried again, for its row would be a new one, of which nobody knows that it is cancelled.
func (f *finishing) collect(at []int) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			n := at[r.Int(0)]
			f.won[n] = true
			f.batch.now = r.Time(1)
			if c := f.claims[n]; !r.Null(2) && !c.release && (c.fate == again || c.fate == dead) {
				c.callOff(cancelReason(r.Text(2)))
			}
		}
		return rows.Err()
	}
}

// write is the second trip, with the COMMIT.
func (f *finishing) write(ctx context.Context) error {
	if err := f.batch.saveInstances(ctx); err != nil { // there are none; but there may be ids that handlers gave
		return err
	}
	return f.batch.write(ctx)
}

// settle gives up what did not win. When a finish before this one had an unknown outcome, it did most likely commit.
func (l *leased) settle(f *finishing) {
	for n, c := range f.claims {
		if f.won[n] || c.tried {
			l.letGo(c)
			continue
		}
		l.lose(c)
	}
	l.settleLanes(f)
	if !f.batch.now.IsZero() {
		l.noteClock(f.batch.now, f.batch.begun)
	}
	wakeReleased(l, f)
}

// letGo forgets a message that has met its fate.
func (l *leased) letGo(c *claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, c)
	signal(l.room)
	if n := l.lanes[c.key]; n != nil {
		if n.running == c {
			n.running = nil
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w *claimed) bool { return w == c })
	}
}

// wakeReleased tells others of messages that wait for them now.
func wakeReleased(l *leased, f *finishing) {
	if slices.ContainsFunc(f.claims, func(c *claimed) bool { return c.release }) {
		f.batch.noteWake(l.queue, time.Time{})
	}
}
