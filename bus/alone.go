package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// A leased message whose process died is claimed again when its lease has ended, and that claim counts the death in the message's
// row. A claim that was lost otherwise counts for nothing. A process dies once in a while, and its messages run as before. After a
// second death a message is a suspect, and no more, for what ran beside it shows the same. A suspect is run alone in its endpoint,
// and its row says so before it runs. What dies so is guilty; see suspect.guilty.
//
// To be alone it has to wait until everything else in hand has ended, and nothing else may begin meanwhile. Both waits are bounded:
// a suspect that finds no rest runs beside others, and one that takes long gets company. So suspects cost an endpoint seconds, and
// not the time of its longest handler. Each further death doubles the bound, so a message that kills late is convicted, too.

// mayDie is how many processes may die with a message in hand before it is run alone.
const mayDie = 1

// aloneAtFirst is how long an endpoint stands still for a message with which two processes died.
const aloneAtFirst = 5 * time.Second

// standstill is how long an endpoint may stand still for a suspect, once before it runs and once while it does.
func (f suspect) standstill(most time.Duration) time.Duration {
	doublings := min(max(0, f.deaths-mayDie-1), 16)
	return max(aloneAtFirst, min(aloneAtFirst<<doublings, most))
}

// session is the owner of claims: it tells others whether the process that had one has died.
func (l *leased) session() saga.ID { return l.bus.session.id }

// setSuspectsAside takes out of claims the messages with which processes died, and convicts the guilty. It returns what is to be
// handled now. Where there is a suspect, that is what needs no handler: the others go back to the queue, so that the suspect finds
// rest.
func (l *leased) setSuspectsAside(claims []*claimed) []*claimed {
	if !slices.ContainsFunc(claims, func(c *claimed) bool { return c.crashes.deaths > mayDie }) {
		return claims
	}
	var decided, free, suspects []*claimed
	for _, c := range claims {
		f := c.crashes
		switch {
		case c.fate != left:
			decided = append(decided, c)
		case f.deaths <= mayDie:
			free = append(free, c)
		case f.guilty(l.options.MaxCrashes):
			c.die("process died", fmt.Errorf("%w: %d processes, of which %d had nothing else of the endpoint in hand", ErrProcessDied, f.deaths, f.alone))
			decided = append(decided, c)
		default:
			suspects = append(suspects, c)
		}
	}
	if len(suspects) == 0 {
		return append(decided, free...)
	}
	l.giveBack(free)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspects = append(l.suspects, suspects...)
	return decided
}

// faceSuspects runs the suspects one after another, each alone if that can be had in time. The loop that claims calls it, so
// nothing begins beside them. It returns false when ctx has ended.
func (l *leased) faceSuspects(ctx context.Context) bool {
	for c := l.nextSuspect(); c != nil; c = l.nextSuspect() {
		if !l.face(ctx, c) {
			l.giveBack([]*claimed{c}) // at the end of ctx the others go back, too
		}
	}
	return ctx.Err() == nil
}

// face runs one suspect. It returns false when that cannot be begun.
//
// What did not let one suspect find rest is likely to be there still: the next one waits only if it may wait for longer.
func (l *leased) face(ctx context.Context, c *claimed) bool {
	bound := c.crashes.standstill(l.options.StepTimeout)
	wait := bound
	if wait <= l.restless {
		wait = 0
	}
	alone := l.awaitRest(ctx, 1, wait)
	if ctx.Err() != nil || alone && l.markAlone(ctx, c) != nil {
		return false
	}
	l.sort([]*claimed{c})
	switch {
	case !alone:
		l.restless = max(l.restless, wait)
	case l.awaitRest(ctx, 0, bound):
		l.restless = 0
	case ctx.Err() == nil:
		l.restless = bound
		l.markInCompany(ctx, c)
	}
	return true
}

func (l *leased) nextSuspect() *claimed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.suspects) == 0 {
		return nil
	}
	c := l.suspects[0]
	l.suspects = l.suspects[1:]
	return c
}

// awaitRest waits until nothing is in hand except the suspects that wait and so many more. What has been handled is finished then, too,
// or a death that follows would count against it. It returns false when that took too long, or ctx has ended.
func (l *leased) awaitRest(ctx context.Context, more int, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		l.mu.Lock()
		rest := len(l.held) <= len(l.suspects)+more
		l.mu.Unlock()
		if rest {
			return ctx.Err() == nil
		}
		select {
		case <-l.room:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

var errNotMarked = errors.New("its claim is lost")

// markAlone writes into the row that the message is run alone, before it is.
func (l *leased) markAlone(ctx context.Context, c *claimed) error {
	defer l.keepStill([]*claimed{c})()
	return l.mark(ctx, c, true)
}

// markInCompany takes the mark back while the handler runs. A finish may meet it, and goes on: the claim stays what it is.
func (l *leased) markInCompany(ctx context.Context, c *claimed) {
	l.extending.Lock()
	defer l.extending.Unlock()
	_ = l.mark(ctx, c, false) // mark has said why, and the message may just have ended
}

func (l *leased) mark(ctx context.Context, c *claimed, alone bool) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, errNotMarked) {
			l.bus.calm.Warn("edda: a batch was rolled back", "endpoint", l.name, "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	for _, at := range c.rows {
		tag, err := l.pool.Exec(ctx, l.queue.sql("mark_alone"), at, [16]byte(c.id), c.number, [16]byte(l.session()), alone)
		if err != nil {
			return fmt.Errorf("mark a suspect: %w", explain(err))
		}
		if tag.RowsAffected() == 1 {
			return nil
		}
	}
	return fmt.Errorf("mark a suspect: %w", errNotMarked)
}
