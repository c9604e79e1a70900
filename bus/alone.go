package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// A leased message whose process died is claimed again when its lease has ended, and that claim counts the death in the
// message's row. A claim that was lost otherwise counts for nothing. A process dies once in a while, and its messages
// run as before. After a second death a message is a suspect, and no more, for what ran beside it shows the same. A
// suspect is run alone in its endpoint, and its row says so before it runs. What dies so is guilty; see suspect.guilty.
//
// To be alone it has to wait until everything else in hand has ended, and nothing else may begin meanwhile. Both waits
// are bounded: a suspect that finds no rest runs beside others, and one that takes long gets company. So suspects cost
// an endpoint seconds, and not the time of its longest handler. Each further death doubles the bound, so a message that
// kills late is convicted, too.
//
// In an ordered endpoint a suspect is faced when it is the first of its lane. What waits in lanes has not begun: it
// stays there meanwhile, and the death of a process does not count against it. What the messages of the dead had
// against them is kept while they are parked.

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

// suspicion is what deaths say of a message before it is handled.
type suspicion uint8

const (
	innocentYet suspicion = iota
	suspected             // it is to be run alone
	decided               // it needs no handler, or is guilty by now
)

// suspicion judges c, and convicts it when enough processes died with it.
func (l *leased) suspicion(c *claimed) suspicion {
	f := c.crashes
	switch {
	case c.fate != left:
		return decided
	case f.deaths <= mayDie:
		return innocentYet
	case f.guilty(l.options.MaxCrashes):
		c.die("process died", fmt.Errorf("%w: %d processes, of which %d had nothing else of the endpoint in hand",
			ErrProcessDied, f.deaths, f.alone))
		return decided
	}
	return suspected
}

// acquitFollowers takes back deaths that were counted against messages of an ordered endpoint which had not begun. What
// a process has claimed of one key begins one after another, so only the first is blamed for its death, unless an
// earlier one is parked. When one was alone in hand, only that one is blamed. The caller has sorted claims by their
// turns.
func acquitFollowers(claims []*claimed, parked map[string]time.Time) {
	type hands struct {
		key string
		of  saga.ID
	}
	var lonely map[saga.ID]bool
	var first map[hands]bool
	for _, c := range claims {
		if c.diedAlone {
			if lonely == nil {
				lonely = map[saga.ID]bool{}
			}
			lonely[c.before] = true
		}
	}
	for _, c := range claims {
		if !c.died || c.diedAlone || c.key == "" {
			continue
		}
		if first == nil {
			first = map[hands]bool{}
		}
		in := hands{c.key, c.before}
		if at, there := parked[c.key]; lonely[c.before] || first[in] || there && at.Before(c.due) {
			c.crashes.deaths--
		}
		first[in] = true
	}
}

// setSuspectsAside takes out of claims the messages with which processes died, and convicts the guilty. It returns what
// is to be handled now. Where there is a suspect, that is what needs no handler: the others go back to the queue, so
// that the suspect finds rest.
func (l *leased) setSuspectsAside(claims []*claimed) []*claimed {
	if !slices.ContainsFunc(claims, func(c *claimed) bool { return c.crashes.deaths > mayDie }) {
		return claims
	}
	var over, free, suspects []*claimed
	for _, c := range claims {
		switch l.suspicion(c) {
		case decided:
			over = append(over, c)
		case innocentYet:
			free = append(free, c)
		case suspected:
			suspects = append(suspects, c)
		}
	}
	if len(suspects) == 0 {
		return append(over, free...)
	}
	l.giveBack(free)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspects = append(l.suspects, suspects...)
	return over
}

// faceSuspects runs the suspects one after another, each alone if that can be had in time. The loop that claims calls
// it, so nothing begins beside them, and no lane goes on before the last one. It returns false when ctx has ended.
func (l *leased) faceSuspects(ctx context.Context) bool {
	for l.faceThese(ctx) {
		l.startNext(l.keys()) // which may set the next ones aside
	}
	return ctx.Err() == nil
}

// faceThese faces the suspects that are there. It reports whether there were any.
func (l *leased) faceThese(ctx context.Context) (any bool) {
	for c := l.nextSuspect(); c != nil; c = l.nextSuspect() {
		any = true
		if !l.face(ctx, c) {
			l.giveBack([]*claimed{c}) // at the end of ctx the others go back, too
		}
	}
	return any
}

// keys are those of all lanes that are ours.
func (l *leased) keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.lanes))
}

// face runs one suspect. It returns false when that cannot be begun.
//
// What did not let one suspect find rest is likely to be there still: the next one waits only if it may wait for
// longer.
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
	if l.facing = len(l.suspects) > 0; !l.facing {
		return nil
	}
	c := l.suspects[0]
	l.suspects = l.suspects[1:]
	return c
}

// awaitRest waits until nothing is in hand except the suspects that wait, so many more, and what waits in lanes. What
// has been handled is finished then, too, or a death that follows would count against it. It returns false when that
// took too long, or ctx has ended.
func (l *leased) awaitRest(ctx context.Context, more int, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		l.mu.Lock()
		rest := l.inHand() <= len(l.suspects)+more
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

// inHand is how many messages are in hand without those that wait for their turn in a lane. The caller holds mu.
func (l *leased) inHand() int {
	n := len(l.held)
	for _, lane := range l.lanes {
		n -= len(lane.waiting)
	}
	return n
}

var errNotMarked = errors.New("its claim is lost")

// markAlone writes into the row that the message is run alone, before it is.
func (l *leased) markAlone(ctx context.Context, c *claimed) error {
	defer l.keepStill([]*claimed{c})()
	return l.mark(ctx, c, true)
}

// markInCompany takes the mark back while the handler runs. A finish may meet it, and goes on: the claim stays what it
// is.
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
		tag, err := l.pool.Exec(ctx, l.queue.sql("mark_alone"), at, [16]byte(c.id), c.number, [16]byte(l.session()),
			alone)
		if err != nil {
			return fmt.Errorf("mark a suspect: %w", explain(err))
		}
		if tag.RowsAffected() == 1 {
			return nil
		}
	}
	return fmt.Errorf("mark a suspect: %w", errNotMarked)
}
