package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/saga"
)

// A leased message whose process died is claimed again when its lease has ended, and its row shows how often that
// happened: the number of the claim. A process dies once in a while, and its messages run as before. After a second death in a
// row a message is a suspect, and no more, for what ran beside it shows the same: it is run alone in its endpoint, which is
// marked in its row before. What dies so is guilty; see suspect.guilty.

// aloneMark is added to the number of a claim when its message is to be run alone.
const aloneMark = 1000

// mayDie is how many processes may die with a message in hand before it is run alone.
const mayDie = 1

// session is the owner of claims: it tells others whether the process that had one has died.
func (l *leased) session() saga.ID { return l.bus.session.id }

// setSuspectsAside takes out of claims those with which processes died, and convicts the guilty. The others are returned.
func (l *leased) setSuspectsAside(ctx context.Context, claims []*claimed) ([]*claimed, error) {
	var before []owner
	for _, c := range claims {
		if !c.before.IsZero() {
			before = append(before, owner{session: c.before})
		}
	}
	if len(before) == 0 {
		return claims, nil
	}
	dead, err := l.bus.session.dead(ctx, l.bus.pool, before)
	if err != nil {
		return claims, err
	}
	kept := claims[:0:0]
	for _, c := range claims {
		f := c.deaths()
		switch {
		case !dead[c.before] || c.fate != left || f.deaths <= mayDie:
			kept = append(kept, c)
		case f.guilty(l.options.MaxCrashes):
			c.die("process died", fmt.Errorf("%w: %d processes, of which %d had nothing else of the endpoint in hand", ErrProcessDied, f.deaths, f.alone))
			kept = append(kept, c)
		default:
			l.mu.Lock()
			l.suspects = append(l.suspects, c)
			l.mu.Unlock()
		}
	}
	return kept, nil
}

// deaths is how many processes died with c in hand, as the number of its claim has it.
func (c *claimed) deaths() suspect {
	ended := c.number - 1
	return suspect{deaths: ended%aloneMark + ended/aloneMark, alone: ended / aloneMark}
}

// faceSuspects runs the suspects one after another, with nothing else of this endpoint in hand. The loop that claims calls
// it, so nothing begins beside them. It returns false when ctx has ended.
func (l *leased) faceSuspects(ctx context.Context) bool {
	for {
		c := l.nextSuspect()
		if c == nil {
			return ctx.Err() == nil
		}
		if !l.awaitRest(ctx, 1) || l.markAlone(ctx, c) != nil {
			c.release = true
			l.end(c)
			continue // at the end of ctx the others are released, too
		}
		l.sort([]*claimed{c})
		l.awaitRest(ctx, 0)
	}
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

// awaitRest waits until nothing is in hand but the suspects that wait and so many more: what has been handled is
// finished, too, or a death that follows would count against it. It returns false when ctx has ended before.
func (l *leased) awaitRest(ctx context.Context, more int) bool {
	for {
		l.mu.Lock()
		rest := len(l.held) <= len(l.suspects)+more
		l.mu.Unlock()
		switch {
		case rest:
			return ctx.Err() == nil
		case !l.awaitRoom(ctx):
			return false
		}
	}
}

var errNotMarked = errors.New("its claim is lost")

// markAlone writes into the row that the message is run alone, before it is.
func (l *leased) markAlone(ctx context.Context, c *claimed) (err error) {
	defer func() {
		if err != nil {
			l.bus.log.Warn("edda: a batch was rolled back", "endpoint", l.name, "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	defer l.keepStill([]*claimed{c})()
	for _, at := range c.rows {
		tag, err := l.pool.Exec(ctx, l.queue.sql("mark_alone"), at, [16]byte(c.id), c.number, [16]byte(l.session()), aloneMark)
		if err != nil {
			return fmt.Errorf("mark a suspect: %w", explain(err))
		}
		if tag.RowsAffected() == 1 {
			c.number += aloneMark
			return nil
		}
	}
	return fmt.Errorf("mark a suspect: %w", errNotMarked)
}
