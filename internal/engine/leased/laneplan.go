package leased

import (
	"slices"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// lanePlan says how a finish changes the lanes of its messages.
type lanePlan struct {
	held    map[string]bool // lanes that are ours, and stay so until our COMMIT
	parked  map[string]bool // lanes with parked messages
	leave   []string        // lanes to leave: no message waits there
	giveUp  []string        // lanes to give up: messages wait there, and this process stops
	waits   []*claimed      // failed messages that their lanes wait for
	parks   []*claimed      // messages to park: those behind a failed one, and messages that have not begun
	unsure  []string        // lanes whose parked and claimed messages are unknown: they end with their leases
	adopt   []string        // lanes whose parked messages are ours now
	adopted *adoption
}

// lockLanes queues the statements that lock the lanes, and check whether messages are parked there.
func (t *finishing) lockLanes(pipeline *pgx.Batch) {
	if !t.Options.Ordered {
		return
	}
	q, keys := t.To.Queue, keysOf(t.claims)
	t.plan.held, t.plan.parked = map[string]bool{}, map[string]bool{}
	pipeline.Queue(q.SQL("lock_lanes"), q.ID, texts(keys), t.owner).Query(collectKeys(t.plan.held))
	pipeline.Queue(q.SQL("parked_in"), q.ID, texts(keys)).Query(collectKeys(t.plan.parked))
}

// planLanes decides how to continue in each lane after its messages have ended.
func (t *finishing) planLanes() {
	if !t.Options.Ordered {
		return
	}
	t.held.mu.Lock()
	defer t.held.mu.Unlock()
	p, stopping := &t.plan, t.held.stopping
	for _, key := range keysOf(t.claims) {
		n := t.held.lanes[key]
		if !p.held[key] || n == nil {
			continue
		}
		remain, failed := t.remaining(key, n)
		if !stopping && slices.ContainsFunc(t.claims, func(m *claimed) bool { return m.key == key && m.release }) {
			p.parks, remain = append(p.parks, remain...), nil // messages claimed behind it must not come before it
		}
		parked := p.parked[key] || slices.ContainsFunc(p.parks, func(m *claimed) bool { return m.key == key })
		switch {
		case t.unsure(key):
			p.unsure = append(p.unsure, key)
		case failed != nil:
			failed.msg.WaitInLane()
			p.waits = append(p.waits, failed)
			p.parks = append(p.parks, remain...)
		case len(remain) > 0:
		case stopping && parked:
			p.giveUp = append(p.giveUp, key)
		case parked:
			p.adopt = append(p.adopt, key)
		default:
			p.leave = append(p.leave, key)
		}
	}
}

// isStray reports whether m is to be tried again in a lane that this process has given up, but still owns in the
// database until its lease ends. No lane can be made to wait for m: the messages claimed behind it are not known any
// more. So m stays where it is, and comes back with the lane.
func (t *finishing) isStray(m *claimed) bool {
	return t.Options.Strict && m.key != "" && m.msg.Fate == message.FateAgain && !m.release &&
		!t.lanes.has(m.key)
}

// strayed reports whether a stray message is to be written.
func (t *finishing) strayed() bool {
	for n, m := range t.claims {
		if t.won[n] && t.isStray(m) {
			return true
		}
	}
	return false
}

// unsure reports whether an earlier finish with an unknown outcome has ended a message of the lane. That finish may
// also have adopted the parked messages, which would then be ours without a record of them in this process.
func (t *finishing) unsure(key string) bool {
	for n, m := range t.claims {
		if m.key == key && m.trouble.sent && !t.won[n] {
			return true
		}
	}
	return false
}

// remaining lists the messages of a lane that this process still has after this finish, and the message that the lane
// will wait for. Released messages are parked again. The caller holds the mutex of claims.
func (t *finishing) remaining(key string, n *lane) (remain []*claimed, failed *claimed) {
	for i, m := range t.claims {
		switch {
		case m.key != key || !t.won[i]:
		case m.release:
			t.plan.parks = append(t.plan.parks, m)
		case m.msg.Fate == message.FateAgain && t.Options.Strict:
			failed = m
		}
	}
	remain = slices.DeleteFunc(n.all(), func(m *claimed) bool { return slices.Contains(t.claims, m) })
	return remain, failed
}

func (t *finishing) queueLanes(pipeline *pgx.Batch) {
	p, q, owner := &t.plan, t.To.Queue, t.owner
	t.queueWaits(pipeline)
	t.lanes.queuePark(pipeline, p.parks, t.session(), anyNumber)
	if p.adopted = t.lanes.queueAdoption(pipeline, p.adopt, t.effects.In.Begun); len(p.adopt) > 0 {
		pipeline.Queue(q.SQL("keep_lanes"), q.ID, texts(p.adopt), owner, t.Options.Lease.Microseconds())
	}
	if len(p.leave) > 0 {
		pipeline.Queue(q.SQL("leave_lanes"), q.ID, texts(p.leave), owner)
	}
	t.lanes.queueRevival(pipeline, p.giveUp)
}

// queueWaits queues the return of failed messages that their lanes wait for.
func (t *finishing) queueWaits(pipeline *pgx.Batch) {
	rows, due, key := queue.NewReturns(), pg.Timestamps(), pg.Texts()
	for _, m := range t.plan.waits {
		rows.Add(&m.msg.Row, m.msg.Delay, m.msg.Err)
		due.Time(m.msg.Due)
		key.Text(m.key)
		t.effects.NoteWake(t.To.Queue, t.effects.In.Clock().Add(m.msg.Delay))
	}
	rows.Queue(pipeline, t.To.Queue.SQL("wait_in_lanes"), []any{t.To.Queue.ID}, []any{due, key})
}

// concludeLanes continues, after the COMMIT, in the lanes that are still ours.
func (t *finishing) concludeLanes() {
	if !t.Options.Ordered {
		return
	}
	p := &t.plan
	for _, m := range p.parks {
		t.held.letGo(m)
	}
	t.held.locked(func() {
		for _, key := range slices.Concat(p.leave, p.giveUp, keysOf(p.waits)) {
			delete(t.held.lanes, key)
		}
	})
	for _, key := range p.unsure {
		t.held.loseLane(key)
	}
	if p.adopted != nil {
		t.lanes.proceed(t.lanes.adopt(p.adopted))
	}
	ours := make([]string, 0, len(p.held))
	for _, key := range keysOf(t.claims) {
		if p.held[key] {
			ours = append(ours, key)
		} else {
			t.held.loseLane(key)
		}
	}
	t.lanes.startNext(ours)
}
