package leased

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/saga"
)

// quarantine runs messages that processes died with, each alone in its endpoint.
//
// A leased message whose process died is claimed again when its lease has ended, and that claim counts the death in
// the message's row. A claim that was lost for other reasons counts nothing. Processes die now and then, so messages
// with one death run as before. After a second death a message is only suspected, because messages that ran beside it
// look the same. A suspected message is run alone in its endpoint, and its row says so before it runs. If a process
// dies even then, the message is poisoned; see contention.Deaths.
//
// To run a message alone, the endpoint waits until everything else in hand has ended, and starts nothing else while
// the message runs. Both waits are bounded: if the other messages do not end in time, the message runs beside them,
// and if it takes long, others begin beside it. So quarantine costs an endpoint seconds, and not the time of its
// longest handler. Each further death doubles the bound, so a message that kills its process late is found, too.
//
// In an ordered endpoint a suspected message is run when it is the first of its lane. Messages that wait in lanes
// have not begun: they stay there, and the death of a process does not count against them. The deaths that count
// against a message are kept while it is parked.
type quarantine struct {
	*Terms
	claims   *claims
	runner   *runner
	lanes    *lanes
	restless time.Duration // how long a message has waited in vain for the endpoint to be idle
}

// aloneAtFirst is how long an endpoint stops other work for a message after its second death.
const aloneAtFirst = 5 * time.Second

// standstill returns how long an endpoint may stop other work for a message, once before it runs and once while it
// does.
func (d *death) standstill(most time.Duration) time.Duration {
	doublings := min(max(0, d.crashes.Counted-mayDie-1), 16)
	return max(aloneAtFirst, min(aloneAtFirst<<doublings, most))
}

// clearFollowers takes back deaths that were counted against messages of an ordered endpoint whose handlers had not
// begun. A process runs its messages of one key one after the other, so only the first is blamed for its death, and
// no message if an earlier one is parked. If a message was alone in hand, only that message is blamed. The caller has
// sorted claims.
func clearFollowers(claims []*claimed, parked map[string]time.Time) {
	type hands struct {
		key     string
		session saga.ID
	}
	lonely, first := map[saga.ID]bool{}, map[hands]bool{}
	for _, m := range claims {
		if m.death.alone {
			lonely[m.death.session] = true
		}
	}
	for _, m := range claims {
		if !m.death.counted || m.death.alone || m.key == "" {
			continue
		}
		in := hands{m.key, m.death.session}
		if at, there := parked[m.key]; lonely[in.session] || first[in] || there && at.Before(m.msg.Due) {
			m.death.crashes = contention.Deaths{Counted: m.death.crashes.Counted - 1, Alone: m.death.crashes.Alone}
		}
		first[in] = true
	}
}

// setAside takes suspected messages out of claims, and makes dead letters of messages that have killed enough
// processes. It returns the messages to handle now. With a suspected message these are only messages that need no
// handler: the others return to the queue, so that the endpoint becomes idle.
func (q *quarantine) setAside(claims []*claimed) []*claimed {
	if !slices.ContainsFunc(claims, func(m *claimed) bool { return m.death.crashes.Counted > mayDie }) {
		return claims
	}
	var over, free, suspects []*claimed
	for _, m := range claims {
		switch m.judge(q.Options.MaxCrashes) {
		case decided:
			over = append(over, m)
		case unsuspected:
			free = append(free, m)
		case suspected:
			suspects = append(suspects, m)
		}
	}
	if len(suspects) == 0 {
		return append(over, free...)
	}
	q.claims.release(free...)
	q.claims.locked(func() { q.claims.quarantined = append(q.claims.quarantined, suspects...) })
	return over
}

// run runs the quarantined messages one after the other, each alone if that is possible in time. The claimer's loop
// calls it, so nothing begins beside them, and no lane continues before the last one has run. It returns false if ctx
// has ended.
func (q *quarantine) run(ctx context.Context) bool {
	for q.runThese(ctx) {
		q.lanes.startNext(q.lanes.keys()) // this may quarantine the next ones
	}
	return ctx.Err() == nil
}

// runThese runs the messages that are quarantined. It reports whether there were any.
func (q *quarantine) runThese(ctx context.Context) (any bool) {
	for m := q.next(); m != nil; m = q.next() {
		any = true
		if !q.runOne(ctx, m) {
			q.claims.release(m) // if ctx has ended, the others return to the queue, too
		}
	}
	return any
}

// next returns the message that is to be run alone next, or nil.
func (q *quarantine) next() *claimed {
	c := q.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isolating = len(c.quarantined) > 0; !c.isolating {
		return nil
	}
	m := c.quarantined[0]
	c.quarantined = c.quarantined[1:]
	return m
}

// runOne runs one message. It returns false if the message could not begin.
//
// If the endpoint did not become idle for one message, the cause is probably still there: the next message waits only
// if it may wait longer.
func (q *quarantine) runOne(ctx context.Context, m *claimed) bool {
	bound := m.death.standstill(q.Options.StepTimeout)
	wait := bound
	if wait <= q.restless {
		wait = 0
	}
	alone := q.awaitRest(ctx, 1, wait)
	if ctx.Err() != nil || alone && q.markAlone(ctx, m) != nil {
		return false
	}
	q.runner.dispatch([]*claimed{m})
	switch {
	case !alone:
		q.restless = max(q.restless, wait)
	case q.awaitRest(ctx, 0, bound):
		q.restless = 0
	case ctx.Err() == nil:
		q.restless = bound
		q.markInCompany(ctx, m)
	}
	return true
}

// awaitRest waits until nothing is in hand except quarantined messages, messages that wait in lanes, and up to more
// others. Then handled messages are finished, too; otherwise a death that follows would count against them. It
// returns false if that took too long, or ctx has ended.
func (q *quarantine) awaitRest(ctx context.Context, more int, bound time.Duration) bool {
	for until := time.Now().Add(bound); ; {
		if q.inHand() <= more {
			return ctx.Err() == nil
		}
		if run.Wait(ctx, time.Until(until), q.claims.room) != run.Nudged {
			return false
		}
	}
}

// inHand returns how many messages are in hand, without quarantined messages and messages that wait in a lane.
func (q *quarantine) inHand() int {
	c := q.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.held) - len(c.quarantined)
	for _, lane := range c.lanes {
		n -= len(lane.waiting)
	}
	return n
}

var errNotMarked = errors.New("its claim is lost")

// markAlone writes into the row that the message runs alone, before its handler begins.
func (q *quarantine) markAlone(ctx context.Context, m *claimed) error {
	defer q.claims.keepStill([]*claimed{m})()
	return q.mark(ctx, m, true)
}

// markInCompany takes the mark back while the handler runs. If the message is finished at the same time, its claim
// does not change.
func (q *quarantine) markInCompany(ctx context.Context, m *claimed) {
	q.claims.still.Lock()
	defer q.claims.still.Unlock()
	_ = q.mark(ctx, m, false) // mark has logged the error, and the message may have ended by now
}

func (q *quarantine) mark(ctx context.Context, m *claimed, alone bool) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, errNotMarked) {
			q.To.Calm.Warn("edda: a batch was rolled back", "endpoint", q.To.Name, "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, q.patience())
	defer cancel()
	for _, at := range m.rows {
		tag, err := q.Pool.Exec(ctx, q.To.Queue.SQL("mark_alone"), at, [16]byte(m.msg.ID), m.number,
			q.session(), alone)
		if err != nil {
			return fmt.Errorf("mark a suspect: %w", pgerr.Explain(err))
		}
		if tag.RowsAffected() == 1 {
			return nil
		}
	}
	return fmt.Errorf("mark a suspect: %w", errNotMarked)
}
