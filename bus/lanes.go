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
)

// lanePlan is what a finish does with the lanes of its messages.
type lanePlan struct {
	held    map[string]bool // they are ours, and nobody can change that before our COMMIT
	parked  map[string]bool // messages are parked in them
	leave   []string        // nothing waits there
	giveUp  []string        // something does, and we stop
	waits   []*claimed      // failed messages that their lanes wait for
	parks   []*claimed      // what waits behind them, and what we had not begun
	adopt   []string        // lanes whose parked messages are ours now
	adopted *adoption
}

// guarded tells whether more than its claim gives us the right to end a message: a lane or a slot.
func (f *finishing) guarded() bool {
	return f.options.Ordered != Unordered || slices.ContainsFunc(f.claims, func(c *claimed) bool { return c.slot != nil })
}

// lockRights begins the transaction: until it ends nobody can take our slots, and nobody can enter our lanes or park in them.
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
		pipeline.Queue(f.bus.sql.Get("lock_lanes"), f.queue.id, texts(keys), [16]byte(f.owner)).Query(collectKeys(f.lanes.held))
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
		switch {
		case failed != nil:
			failed.inLane = true
			p.waits = append(p.waits, failed)
			p.parks = append(p.parks, remain...)
		case len(remain) > 0:
		case f.stopping && (p.parked[key] || slices.ContainsFunc(p.parks, func(c *claimed) bool { return c.key == key })):
			p.giveUp = append(p.giveUp, key)
		case p.parked[key]:
			p.adopt = append(p.adopt, key)
		default:
			p.leave = append(p.leave, key)
		}
	}
}

// remaining lists what we still have of a lane after this finish, and the message that it will wait for. What is released
// is parked again.
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
	f.queuePark(pipeline, p.parks)
	if p.adopted = f.queueAdoption(pipeline, p.adopt, f.batch.begun); len(p.adopt) > 0 {
		pipeline.Queue(f.bus.sql.Get("keep_lanes"), f.queue.id, texts(p.adopt), owner, f.options.Lease.Microseconds())
	}
	if len(p.leave) > 0 {
		pipeline.Queue(f.bus.sql.Get("leave_lanes"), f.queue.id, texts(p.leave), owner)
	}
	if len(p.giveUp) > 0 {
		pipeline.Queue(f.bus.sql.Get("give_up_lanes"), f.queue.id, texts(p.giveUp), owner)
	}
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
		pipeline.Queue(f.queue.sql("wait_in_lanes"), f.queue.id, r.delay, r.id, r.sent, r.first, r.attempt, r.conflict, r.kind, r.header, r.body, turn, key)
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
	if p.adopted != nil {
		l.proceed(l.adopt(p.adopted))
	}
	for _, key := range keysOf(f.claims) {
		if p.held[key] {
			l.startNext(key)
		} else {
			l.loseLane(key)
		}
	}
}

const (
	sweepWindow = 1000 // lanes that are looked at together
	mostAdopted = 20   // and taken over together
)

// sweepLanes takes over lanes whose owners are gone and in which messages are parked: no new message of their key may ever come.
func (l *leased) sweepLanes(ctx context.Context) error {
	after := ""
	for run.Sleep(ctx, run.Jitter(l.options.Lease/beatsPerLease)) == nil {
		last, err := l.sweepOnce(ctx, after)
		if err != nil && ctx.Err() == nil {
			l.bus.log.Warn("edda: lanes were not swept", "endpoint", l.name, "error", err)
		}
		after = last
	}
	return nil
}

// sweepOnce looks at one window of lanes, and returns where the next begins.
func (l *leased) sweepOnce(ctx context.Context, after string) (last string, err error) {
	l.rows.Lock()
	defer l.rows.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return after, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	b := &batch{Endpoint: l.Endpoint, conn: conn.Conn()}
	defer b.abandon(ctx)
	stale, last, err := l.staleLanes(ctx, b, after)
	if err != nil || len(stale) == 0 {
		return last, err
	}
	heads := map[string]saga.ID{}
	for _, key := range stale[:min(len(stale), mostAdopted)] {
		heads[key] = saga.ID{}
	}
	granted, parked, err := l.askForLanes(ctx, conn, heads, slices.Sorted(maps.Keys(heads)))
	if err != nil {
		return last, explain(err)
	}
	var adopt, leave []string
	for key := range granted {
		if parked[key] {
			adopt = append(adopt, key)
		} else {
			leave = append(leave, key)
		}
	}
	pipeline := &pgx.Batch{}
	adopted := l.queueAdoption(pipeline, adopt, b.begun)
	if len(leave) > 0 {
		pipeline.Queue(l.bus.sql.Get("leave_lanes"), l.queue.id, texts(leave), [16]byte(l.owner))
	}
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return last, fmt.Errorf("take over lanes: %w", explain(err))
	}
	l.proceed(l.adopt(adopted))
	return last, nil
}

// staleLanes begins a transaction in which no other process claims, and looks.
func (l *leased) staleLanes(ctx context.Context, b *batch, after string) (stale []string, last string, err error) {
	seen := 0
	pipeline := &pgx.Batch{}
	b.begun = time.Now()
	l.queueOpen(pipeline)
	pipeline.Queue(l.bus.sql.Get("lock_claims"), l.queue.id)
	pipeline.Queue(l.queue.sql("stale_lanes"), l.queue.id, after, sweepWindow).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			last, seen = r.Text(0), seen+1
			if r.Bool(1) && !l.inLane(last) {
				stale = append(stale, last)
			}
		}
		return rows.Err()
	})
	if err := b.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, after, fmt.Errorf("look for stale lanes: %w", explain(err))
	}
	if seen < sweepWindow {
		last = ""
	}
	return stale, last, nil
}
