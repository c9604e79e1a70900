package leased

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lanes keeps the messages of each key in their order, in an ordered endpoint. The messages in hand of each lane are
// a part of claims, whose mutex guards them.
type lanes struct {
	*Terms
	claims *claims
	runner *runner

	// held by an ordered claim, a finish or a sweep, because each decides about lanes; no extension waits for it
	deciding sync.Mutex
}

// lane is the right to handle the messages of one key, and the messages of that key that this process has claimed.
type lane struct {
	running *claimed
	waiting []*claimed // in order
	renewed time.Time  // by our clock, before the last statement known to have extended the right
}

// all returns the messages of the lane that this process has in hand.
func (n *lane) all() []*claimed {
	if n == nil {
		return nil
	}
	all := slices.Clone(n.waiting)
	if n.running != nil {
		all = append(all, n.running)
	}
	return all
}

// begin takes the first message of the lane. The lane waits until that message is finished.
func (n *lane) begin() *claimed {
	n.running = n.waiting[0]
	n.waiting = n.waiting[1:]
	return n.running
}

// remove removes a message from the lane.
func (n *lane) remove(m *claimed) {
	if n.running == m {
		n.running = nil
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(w *claimed) bool { return w == m })
}

// inOrder compares messages by the order of delivery.
func inOrder(a, b *claimed) int {
	if c := a.msg.Due.Compare(b.msg.Due); c != 0 {
		return c
	}
	return slices.Compare(a.msg.ID[:], b.msg.ID[:])
}

// keysOf lists the lanes of messages, in the order of locking.
func keysOf(claims []*claimed) (keys []string) {
	for _, m := range claims {
		if m.key != "" {
			keys = append(keys, m.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

const adoptAtOnce = 64 // parked messages of one key that return at a time

// claimInOrder claims up to want messages in one transaction, and parks messages whose lanes belong to a different
// process. The claims of other processes wait for this transaction.
func (c *claimer) claimInOrder(ctx context.Context, conn *pgxpool.Conn, want int) (got, error) {
	l := c.lanes
	l.deciding.Lock()
	defer l.deciding.Unlock()
	b := message.NewDecoder(c.To, time.Now())
	defer c.rollback(ctx, conn.Conn())
	var all []*claimed
	pipeline := c.openAt(&b.Now)
	l.queueClaimsLock(pipeline)
	c.queueClaim(pipeline, b, want, &all)
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("claim: %w", pgerr.Explain(err))
	}
	if len(all) == 0 {
		c.rollback(ctx, conn.Conn())
		c.To.WakeForNext(ctx, conn.Conn(), c.Alarm, b.Now)
		return got{}, nil
	}
	l.decode(b, all)
	e, err := l.enter(ctx, conn, all)
	if errors.Is(err, errLaneLost) {
		return got{messages: want}, nil // nothing is claimed, and the next claim enters the lane again
	}
	if err != nil {
		return got{}, fmt.Errorf("enter lanes: %w", pgerr.Explain(err))
	}
	pipeline = &pgx.Batch{}
	l.queuePark(pipeline, e.park, c.session(), anyNumber)
	adopted := l.queueAdoption(pipeline, e.adopt, b.Begun)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("park messages: %w", pgerr.Explain(err))
	}
	l.proceed(append(e.ours, l.adopt(adopted)...))
	return gotOf(all, want), nil
}

// queueClaimsLock makes the transaction wait until no other one claims, and keeps others from claiming until it ends.
func (l *lanes) queueClaimsLock(pipeline *pgx.Batch) {
	pipeline.Queue(l.To.Queue.SQL("lock_claims"), l.To.Queue.ID)
}

// decode decodes messages, reads their keys and sorts them. A message that cannot be read has no key, and is finished
// out of order.
func (l *lanes) decode(b *message.Decoder, all []*claimed) {
	b.DecodeClaimed(l.runner.work, func(n int) {
		if m := all[n]; m.msg.Fate == message.FateLeft && m.msg.Consumer != nil {
			if key := b.KeyOf(&m.msg); m.msg.Fate == message.FateLeft {
				m.key = key
			}
		}
	})
	slices.SortFunc(all, inOrder)
}

// entered is the result of enter.
type entered struct {
	ours  []*claimed // to be handled
	park  []*claimed // to be parked: a different process has the lane, or other messages are parked in it before them
	adopt []string   // keys of lanes that are ours now, and have parked messages
}

// enter enters the lanes that this process does not have. If a lane that it had is lost, it gives up its messages in
// the lane, and returns errLaneLost.
func (l *lanes) enter(ctx context.Context, conn *pgxpool.Conn, all []*claimed) (e entered, err error) {
	heads, joined := map[string]saga.ID{}, l.joined(all)
	for _, m := range all {
		if _, known := heads[m.key]; m.key != "" && !known && joined[m.key] == nil {
			heads[m.key] = m.msg.ID
		}
	}
	a, err := l.ask(ctx, conn, heads, slices.Sorted(maps.Keys(joined)), keysOf(all))
	if err != nil {
		return e, err
	}
	for key := range joined {
		if !a.live[key] {
			l.claims.loseLane(key)
			err = errLaneLost
		}
	}
	for key := range a.granted {
		if _, parked := a.parked[key]; parked {
			e.adopt = append(e.adopt, key)
		}
	}
	clearFollowers(all, a.parked)
	for _, m := range all {
		m.lane = joined[m.key]
		_, parked := a.parked[m.key]
		if m.key == "" || (a.granted[m.key] || a.live[m.key]) && !parked {
			e.ours = append(e.ours, m)
		} else {
			e.park = append(e.park, m)
		}
	}
	return e, err
}

// errLaneLost: the process stalled, or could not extend its leases, and a different process has the lane or may have
// it.
var errLaneLost = errors.New("a lane is lost")

// asked is the result of ask, by key.
type asked struct {
	granted map[string]bool      // ours now
	live    map[string]bool      // ours before, and still
	parked  map[string]time.Time // the due of the first message that is parked there
}

// ask enters the lanes of heads. It checks whether the lanes that this process has joined are still ours, and which
// of all lanes have parked messages.
func (l *lanes) ask(ctx context.Context, conn *pgxpool.Conn, heads map[string]saga.ID, joined, all []string) (
	asked, error,
) {
	a := asked{map[string]bool{}, map[string]bool{}, map[string]time.Time{}}
	sorted := slices.Sorted(maps.Keys(heads))
	ids := pg.UUIDs()
	for _, key := range sorted {
		ids.UUID(heads[key])
	}
	q, owner, session := l.To.Queue, l.owner, l.session()
	pipeline := &pgx.Batch{}
	if len(sorted) > 0 {
		pipeline.Queue(q.SQL("enter_lanes"), q.ID, texts(sorted), ids, owner, l.Options.Lease.Microseconds(),
			session).Query(collectKeys(a.granted))
	}
	if len(joined) > 0 {
		pipeline.Queue(q.SQL("live_lanes"), q.ID, texts(joined), owner).Query(collectKeys(a.live))
	}
	pipeline.Queue(q.SQL("parked_in"), q.ID, texts(all)).Query(collectParked(a.parked))
	return a, conn.SendBatch(ctx, pipeline).Close()
}

func texts(all []string) *pg.Array {
	a := pg.Texts()
	for _, text := range all {
		a.Text(text)
	}
	return a
}

func collectKeys(into map[string]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			into[pg.CurrentRow(rows).Text(0)] = true
		}
		return rows.Err()
	}
}

// collectParked reads the result of parked_in.
func collectParked(into map[string]time.Time) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			into[r.Text(0)] = r.Time(1)
		}
		return rows.Err()
	}
}

// adoption is the return of messages that are parked in lanes that are ours now.
type adoption struct {
	decoder *message.Decoder
	claims  []*claimed
}

// queueAdoption queues the return of messages parked in lanes that are ours, in a transaction that began after begun.
// The adoption has the messages after the pipeline was sent.
func (l *lanes) queueAdoption(pipeline *pgx.Batch, keys []string, begun time.Time) *adoption {
	a := &adoption{decoder: message.NewDecoder(l.To, begun)}
	if o := &l.Options; len(keys) > 0 {
		pipeline.Queue(l.To.Queue.SQL("next_parked"), l.To.Queue.ID, texts(keys), adoptAtOnce, l.session(),
			o.Lease.Microseconds(), o.BatchBytes/len(keys)).Query(readClaims(a.decoder, &a.claims))
	}
	return a
}

// adopt decodes adopted messages. They keep their place in the lane, even if they are decided without a handler.
func (l *lanes) adopt(a *adoption) []*claimed {
	if len(a.claims) == 0 {
		return nil
	}
	a.decoder.DecodeClaimed(l.runner.work, nil)
	return a.claims
}

const anyNumber = -1

// queuePark queues the statement that parks messages which a session has claimed. Unless number is anyNumber, the
// transaction fails if it parks a different number.
func (l *lanes) queuePark(pipeline *pgx.Batch, all []*claimed, session saga.ID, number int) {
	if len(all) == 0 {
		return
	}
	due, id, claim, key := pg.Timestamps(), pg.UUIDs(), pg.Ints(), pg.Texts()
	deaths, alone := pg.Ints(), pg.Ints()
	for _, m := range all {
		for _, at := range m.rows {
			due.Time(at)
			id.UUID(m.msg.ID)
			claim.Int(m.number)
			key.Text(m.key)
			deaths.Int(m.death.crashes.Counted)
			alone.Int(m.death.crashes.Alone)
		}
	}
	pipeline.Queue(l.To.Queue.SQL("park"), l.To.Queue.ID, due, id, claim, key, [16]byte(session), number, deaths, alone)
}

// queueRevival queues the statement that makes lanes wait for the first message that is parked in them.
func (l *lanes) queueRevival(pipeline *pgx.Batch, keys []string) {
	if len(keys) > 0 {
		pipeline.Queue(l.To.Queue.SQL("revive_lanes"), l.To.Queue.ID, texts(keys))
	}
}

// joined returns the lanes of the messages that are ours.
func (l *lanes) joined(all []*claimed) map[string]*lane {
	joined := map[string]*lane{}
	l.claims.mu.Lock()
	defer l.claims.mu.Unlock()
	for _, m := range all {
		if n := l.claims.lanes[m.key]; n != nil {
			joined[m.key] = n
		}
	}
	return joined
}

// has reports whether the lane of key is ours.
func (l *lanes) has(key string) (has bool) {
	l.claims.locked(func() { has = l.claims.lanes[key] != nil })
	return has
}

// keys lists the lanes that are ours.
func (l *lanes) keys() (keys []string) {
	l.claims.locked(func() { keys = slices.Sorted(maps.Keys(l.claims.lanes)) })
	return keys
}

// proceed puts messages into their lanes, and starts the first of each idle lane. Messages without a key are finished
// or started on their own.
func (l *lanes) proceed(all []*claimed) {
	loose, keys := l.enqueue(all)
	l.runner.dispatch(loose)
	l.startNext(keys)
}

// enqueue holds messages and puts them into their lanes. It gives up messages claimed for a lane that this process
// has given up since. It returns the messages without a key, and the lanes to continue.
func (l *lanes) enqueue(all []*claimed) (loose []*claimed, keys []string) {
	c := l.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		c.holdOne(m) // before the lanes are read: a lane is given up with an older claim of the same message
		c.clock.note(m.decoder.Now, m.decoder.Begun)
	}
	for _, m := range all {
		n := c.lanes[m.key]
		switch {
		case m.key == "":
			loose = append(loose, m)
			continue
		case m.lane != nil && n != m.lane:
			c.loseNow(m)
			continue
		case n == nil:
			n = &lane{renewed: m.decoder.Begun}
			c.lanes[m.key] = n
			c.watch(m)
		}
		n.waiting = append(n.waiting, m)
		keys = append(keys, m.key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		if n := c.lanes[key]; n != nil { // a lane that was given up in this loop has nothing to sort
			slices.SortFunc(n.waiting, inOrder)
		}
	}
	return loose, keys
}

// startNext starts the first message of each of these lanes, unless a message of the lane is running.
func (l *lanes) startNext(keys []string) {
	next, suspects := l.takeHeads(keys)
	l.runner.dispatch(next)
	if suspects { // the claimer runs them, whatever it is waiting for
		l.Alarm.Wake()
		l.claims.room.Send()
	}
}

// takeHeads takes the first message of each of these lanes. It quarantines suspected messages, and reports whether it
// found any. While a message is quarantined it takes only messages that need no handler: the lanes continue when the
// last quarantined one has run.
func (l *lanes) takeHeads(keys []string) (next []*claimed, suspects bool) {
	c := l.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	free := make([]*lane, 0, len(keys))
	for _, key := range keys {
		n := c.lanes[key]
		if n == nil || n.running != nil || len(n.waiting) == 0 {
			continue
		}
		switch n.waiting[0].judge(c.terms.Options.MaxCrashes) {
		case unsuspected:
			free = append(free, n)
		case suspected:
			if m := n.begin(); c.stopping {
				next = append(next, m) // no handler will run it: it returns to the queue
			} else {
				c.quarantined, suspects = append(c.quarantined, m), true
			}
		case decided:
			next = append(next, n.begin())
		}
	}
	if c.isolating || len(c.quarantined) > 0 {
		return next, suspects
	}
	for _, n := range free {
		next = append(next, n.begin())
	}
	return next, suspects
}
