package leased

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"

	"github.com/edda-go/edda/saga"
)

// quarantine runs messages with which processes died, each alone in its endpoint.
//
// A leased message whose process died is claimed again when its lease has ended, and that claim counts the death in the
// message's row. A claim that was lost otherwise counts for nothing. Processes die once in a while, and the messages of
// one run as before. After a second death a message is suspected, and no more than that, for what ran beside it looks
// the same. A suspected message is run alone in its endpoint, and its row says so before it runs. One that kills a
// process even then is poisoned; see trouble.Deaths.
//
// To be alone it has to wait until everything else in hand has ended, and nothing else may begin meanwhile. Both waits
// are bounded: if the endpoint finds no rest, the message runs beside others, and if it takes long, others begin beside
// it. So quarantine costs an endpoint seconds, and not the time of its longest handler. Each further death doubles the
// bound, so a message that kills its process late is found, too.
//
// In an ordered endpoint a suspected message is run when it is the first of its lane. What waits in lanes has not
// begun: it stays there meanwhile, and the death of a process does not count against it. The deaths that count against
// a message are kept while it is parked.
type quarantine struct {
	*Terms
	claims   *claims
	runner   *runner
	lanes    *lanes
	restless time.Duration // so long one message has waited in vain for the endpoint to come to rest
}

// aloneAtFirst is how long an endpoint stands still for a message with which two processes died.
const aloneAtFirst = 5 * time.Second

// standstill is how long an endpoint may stand still for a message, once before it runs and once while it does.
func (d *death) standstill(most time.Duration) time.Duration {
	doublings := min(max(0, d.crashes.Counted-mayDie-1), 16)
	return max(aloneAtFirst, min(aloneAtFirst<<doublings, most))
}

// clearFollowers takes back deaths that were counted against messages of an ordered endpoint that had not begun. A
// process runs what it has claimed of one key one after another, so only the first is blamed for its death, unless an
// earlier one is parked. If one had nothing else in hand, only that one is blamed. The caller has sorted claims.
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
			m.death.crashes.Counted--
		}
		first[in] = true
	}
}

// setAside takes suspected messages out of claims, and makes dead letters of those that have killed enough processes.
// It returns what is to be handled now. If there is a suspected message, that is what needs no handler: the others go
// back to the queue, so that the endpoint comes to rest.
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

// run runs the quarantined messages one after another, each alone if that is possible in time. The loop that claims
// calls it, so nothing begins beside them, and no lane goes on before the last one has run. It returns false when ctx
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
			q.claims.release(m) // if ctx has ended, the others go back, too
		}
	}
	return any
}

// next returns the message that is to be run alone next, nil if there is none.
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

// runOne runs one message. It returns false if it could not begin.
//
// What kept the endpoint from coming to rest for one message is likely to be there still: the next message waits only
// if it may wait for longer.
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

// awaitRest waits until nothing is in hand except quarantined messages, so many more, and what waits in lanes. Then
// what was handled is finished, too: a death that follows would count against it otherwise. It returns false if that
// took too long, or ctx has ended.
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

// inHand is how many messages are in hand without those that are quarantined and those that wait in a lane.
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

// markAlone writes into the row that the message is run alone, before it is.
func (q *quarantine) markAlone(ctx context.Context, m *claimed) error {
	defer q.claims.keepStill([]*claimed{m})()
	return q.mark(ctx, m, true)
}

// markInCompany takes the mark back while the handler runs. If a finish meets it, the claim stays what it is.
func (q *quarantine) markInCompany(ctx context.Context, m *claimed) {
	q.claims.still.Lock()
	defer q.claims.still.Unlock()
	_ = q.mark(ctx, m, false) // mark has logged the error, and the message may have ended in this moment
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
