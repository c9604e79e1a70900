package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

// lanePlan is what a finish does with the lanes of its messages.
type lanePlan struct {
	held    map[string]bool // they are ours, and nobody can change that before our COMMIT
	parked  map[string]bool // messages are parked in them
	leave   []string        // nothing waits there
	giveUp  []string        // something does, and we stop
	waits   []*claimed      // failed messages that their lanes wait for
	parks   []*claimed      // what waits behind them, and what we had not begun
	unsure  []string        // nobody knows what is parked there and what we have: they end with their leases
	adopt   []string        // lanes whose parked messages are ours now
	adopted *adoption
}

// guarded tells whether more than its claim gives us the right to end a message: a lane or a slot.
func (f *finishing) guarded() bool {
	return f.options.Ordered != Unordered || slices.ContainsFunc(f.claims,
		func(c *claimed) bool { return c.slot != nil })
}

// lockRights begins the transaction: until it ends nobody can take our slots, and nobody can enter our lanes or park in
// them.
func (f *finishing) lockRights(ctx context.Context) error {
	if !f.guarded() {
		return nil
	}
	pipeline := &pgx.Batch{}
	f.batch.begun = time.Now()
	f.queueOpen(pipeline)
	held := f.lockSlots(pipeline)
	if f.options.Ordered != Unordered {
		f.lanes.held, f.lanes.parked = map[string]bool{}, map[string]bool{}
		keys := keysOf(f.claims)
		pipeline.Queue(f.bus.sql.Get("lock_lanes"), f.queue.id, texts(keys),
			[16]byte(f.owner)).Query(collectKeys(f.lanes.held))
		pipeline.Queue(f.bus.sql.Get("parked_in"), f.queue.id, texts(keys)).Query(collectKeys(f.lanes.parked))
	}
	if err := f.batch.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("lock lanes and slots: %w", explain(err))
	}
	f.slots = held()
	return nil
}

// queueRights queues what becomes of lanes and slots, before the COMMIT.
func (f *finishing) queueRights(pipeline *pgx.Batch) {
	f.queueLanes(pipeline)
	f.queueSlots(pipeline)
	f.queueRests(pipeline)
}

// keysOf lists the lanes of messages, in the order in which lanes are locked.
func keysOf(claims []*claimed) (keys []string) {
	for _, c := range claims {
		if c.key != "" {
			keys = append(keys, c.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// planLanes decides what becomes of each lane when its messages have ended.
func (f *finishing) planLanes() {
	if f.options.Ordered == Unordered {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &f.lanes
	for _, key := range keysOf(f.claims) {
		n := f.leased.lanes[key]
		if !p.held[key] || n == nil {
			continue
		}
		remain, failed := f.remaining(key, n)
		if !f.stopping && slices.ContainsFunc(f.claims, func(c *claimed) bool { return c.key == key && c.release }) {
			p.parks, remain = append(p.parks, remain...), nil // what was claimed behind it does not go before it
		}
		parked := p.parked[key] || slices.ContainsFunc(p.parks, func(c *claimed) bool { return c.key == key })
		switch {
		case f.unsure(key):
			p.unsure = append(p.unsure, key)
		case failed != nil:
			failed.inLane = true
			p.waits = append(p.waits, failed)
			p.parks = append(p.parks, remain...)
		case len(remain) > 0:
		case f.stopping && parked:
			p.giveUp = append(p.giveUp, key)
		case parked:
			p.adopt = append(p.adopt, key)
		default:
			p.leave = append(p.leave, key)
		}
	}
}

// isStray reports whether c is to be tried again in a lane that this process has given up, and has in the database
// until its lease ends. Nothing can be said to wait for c there: what was claimed behind it is not known any more. So c
// stays where it is, and comes back with the lane.
func (f *finishing) isStray(c *claimed) bool {
	return f.options.Ordered == Strict && c.key != "" && c.fate == again && !c.release && !f.inLane(c.key)
}

// strayed reports whether a message is to be written that is a stray.
func (f *finishing) strayed() bool {
	for n, c := range f.claims {
		if f.won[n] && f.isStray(c) {
			return true
		}
	}
	return false
}

// unsure reports whether an earlier finish ended a message of the lane, and this process did not hear of it. That
// finish may also have taken over what was parked there, which is ours now without our knowing it.
func (f *finishing) unsure(key string) bool {
	for i, c := range f.claims {
		if c.key == key && c.tried && !f.won[i] {
			return true
		}
	}
	return false
}

// remaining lists what we still have of a lane after this finish, and the message that it will wait for. What is
// released is parked again.
func (f *finishing) remaining(key string, n *lane) (remain []*claimed, failed *claimed) {
	for i, c := range f.claims {
		switch {
		case c.key != key || !f.won[i]:
		case c.release:
			f.lanes.parks = append(f.lanes.parks, c)
		case c.fate == again && f.options.Ordered == Strict:
			failed = c
		}
	}
	for _, c := range n.waiting {
		if !slices.Contains(f.claims, c) {
			remain = append(remain, c)
		}
	}
	if n.running != nil && !slices.Contains(f.claims, n.running) {
		remain = append(remain, n.running)
	}
	return remain, failed
}

func (f *finishing) queueLanes(pipeline *pgx.Batch) {
	p := &f.lanes
	owner := [16]byte(f.owner)
	f.queueWaits(pipeline)
	f.queuePark(pipeline, p.parks, f.session(), anyNumber)
	if p.adopted = f.queueAdoption(pipeline, p.adopt, f.batch.begun); len(p.adopt) > 0 {
		pipeline.Queue(f.bus.sql.Get("keep_lanes"), f.queue.id, texts(p.adopt), owner, f.options.Lease.Microseconds())
	}
	if len(p.leave) > 0 {
		pipeline.Queue(f.bus.sql.Get("leave_lanes"), f.queue.id, texts(p.leave), owner)
	}
	f.queueRevival(pipeline, p.giveUp)
}

// queueWaits queues failed messages whose lanes wait for them.
func (f *finishing) queueWaits(pipeline *pgx.Batch) {
	rows, turn, key := newBackRows(), pg.Timestamps(), pg.Texts()
	for _, c := range f.lanes.waits {
		rows.add(&c.message)
		turn.Time(c.due)
		key.Text(c.key)
		f.batch.noteWake(f.queue, f.batch.clock().Add(c.delay))
	}
	if r := rows; r.id.Len() > 0 {
		pipeline.Queue(f.queue.sql("wait_in_lanes"), f.queue.id, r.delay, r.id, r.sent, r.first, r.attempt, r.conflict,
			r.kind, r.header, r.body, turn, key)
	}
}

// settleLanes goes on in the lanes that are still ours, after the COMMIT.
func (l *leased) settleLanes(f *finishing) {
	if l.options.Ordered == Unordered {
		return
	}
	p := &f.lanes
	for _, c := range p.parks {
		l.letGo(c)
	}
	l.mu.Lock()
	for _, key := range slices.Concat(p.leave, p.giveUp, keysOf(p.waits)) {
		delete(l.lanes, key)
	}
	l.mu.Unlock()
	for _, key := range p.unsure {
		l.loseLane(key)
	}
	if p.adopted != nil {
		l.proceed(l.adopt(p.adopted))
	}
	ours := make([]string, 0, len(p.held))
	for _, key := range keysOf(f.claims) {
		if p.held[key] {
			ours = append(ours, key)
		} else {
			l.loseLane(key)
		}
	}
	l.startNext(ours)
}
