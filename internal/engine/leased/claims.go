package leased

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// claims are the messages that one Run of a leased endpoint has in hand, each from its claim to the commit of its
// finish. All parts of the Run share them. Safe for concurrent use.
type claims struct {
	terms *Terms
	clock dbClock

	over   run.Nudge // a message is ready to be finished
	room   run.Nudge // there may be room for more messages
	sooner run.Nudge // a claim expires before distrust next wakes up
	losses run.Nudge // a claim was lost, and is not logged yet

	still sync.Mutex // held by a statement that moves rows or needs them where they are; guards claimed.rows

	mu          sync.Mutex            // guards all fields below; never held while its holder waits
	held        map[*claimed]struct{} // every claim, from the claim to the finish
	waiting     []*claimed            // no handler runs for these yet
	running     int                   // number of handlers
	most        int                   // handlers at a time, 0 while the endpoint is paused
	handled     int                   // since Run began
	ended       []*claimed            // ready to be finished
	lanes       map[string]*lane      // by key, of an ordered endpoint
	quarantined []*claimed            // processes died with these, and each is to be run alone
	isolating   bool                  // a quarantined message is running: no lane continues
	lost        []*claimed            // not logged yet
	stopping    bool
	watched     time.Time // when distrust checks again
}

func newClaims(t *Terms, most int) *claims {
	return &claims{
		terms: t, held: map[*claimed]struct{}{}, lanes: map[string]*lane{},
		most: most,
		over: run.NewNudge(), room: run.NewNudge(), sooner: run.NewNudge(),
		losses: run.NewNudge(),
	}
}

func (c *claims) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// hold adds messages that were claimed together.
func (c *claims) hold(all []*claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		c.holdOne(m)
	}
}

// holdOne adds a message. If this process still holds an earlier claim of the same row, the lease of that claim has
// ended, and it is lost. The caller holds mu.
func (c *claims) holdOne(m *claimed) {
	if m.number > 1 {
		for old := range c.held {
			if old.msg.ID == m.msg.ID && old.number < m.number && old.msg.Due.Equal(m.msg.Due) {
				c.loseNow(old)
			}
		}
	}
	c.held[m] = struct{}{}
	c.watch(m)
}

// begin notes that the handler of m begins. It reports whether m is still ours.
func (c *claims) begin(m *claimed, cancel context.CancelCauseFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ours := c.held[m]; !ours || !time.Now().Before(c.trusted(m)) {
		return false // it is lost already, or the process stalled since it was claimed
	}
	m.cancel = cancel
	return true
}

// end hands m to the loop that finishes.
func (c *claims) end(m *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.cancel = nil
	if _, ours := c.held[m]; ours {
		c.ended = append(c.ended, m)
		c.handled++
		c.over.Send()
	}
}

// release returns messages to the queue as they were.
func (c *claims) release(all ...*claimed) {
	for _, m := range all {
		m.release = true
		c.end(m)
	}
}

// stop releases every message whose handler has not begun, and stops more from beginning.
func (c *claims) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	all := slices.Concat(c.waiting, c.quarantined)
	for _, n := range c.lanes {
		all = append(all, n.waiting...)
	}
	for _, m := range all {
		m.release = true
	}
	c.ended, c.waiting, c.quarantined = append(c.ended, all...), nil, nil
	c.over.Send()
}

// takeEnded returns up to most messages that are to be finished. Messages whose finish waited in vain for a lock come
// last, one at a time; with retryAside one of them comes first.
func (c *claims) takeEnded(most int, retryAside bool) (all []*claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, n := 0, min(most, len(c.ended))
	if slices.ContainsFunc(c.ended, isAside) {
		slices.SortStableFunc(c.ended, asideLast)
		aside := slices.IndexFunc(c.ended, isAside)
		if n = min(n, aside); n == 0 || retryAside {
			first, n = aside, 1
		}
	}
	all = slices.Clone(c.ended[first : first+n])
	c.ended = slices.Delete(c.ended, first, first+n)
	c.room.Send()
	return all
}

func isAside(m *claimed) bool { return m.trouble.aside }

func asideLast(a, b *claimed) int {
	switch {
	case isAside(a) == isAside(b):
		return 0
	case isAside(a):
		return 1
	}
	return -1
}

// endAgain puts claims that are still ours back, in front of the others. With aside they come after the others, one
// at a time. It reports whether any was still ours.
func (c *claims) endAgain(all []*claimed, aside bool) (any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(all), func(m *claimed) bool {
		_, ours := c.held[m]
		return !ours
	})
	if aside {
		for _, m := range kept {
			m.trouble.aside = true
		}
		c.ended = append(c.ended, kept...)
	} else {
		c.ended = append(kept, c.ended...)
	}
	return len(kept) > 0
}

// letGo removes a message that is finished.
func (c *claims) letGo(m *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, m)
	c.room.Send()
	if n := c.lanes[m.key]; n != nil {
		n.remove(m)
	}
}

// lose gives up m and the rest of its lane, since a different process may have them. It cancels their handlers, and
// no result of those is written.
//
// logLosses logs it and emits an event later: a function of the user must not hold up the extensions.
func (c *claims) lose(m *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseNow(m)
}

// loseNow is lose for a caller that holds mu.
func (c *claims) loseNow(m *claimed) {
	c.lost = append(c.lost, c.drop(m)...)
	c.losses.Send()
}

// loseLane gives up the messages of a lane that is not ours any more.
func (c *claims) loseLane(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.lanes[key]
	switch left := n.all(); {
	case n == nil:
	case len(left) == 0:
		delete(c.lanes, key)
	default:
		c.loseNow(left[0])
	}
}

// drop removes m and the rest of its lane. The caller holds mu.
func (c *claims) drop(m *claimed) (lost []*claimed) {
	if _, ours := c.held[m]; !ours {
		return nil // its lane may have been entered again since
	}
	all := []*claimed{m}
	if n := c.lanes[m.key]; n != nil {
		all = append(all, slices.DeleteFunc(n.all(), func(other *claimed) bool { return other == m })...)
		delete(c.lanes, m.key)
	}
	for n, other := range all {
		if _, ours := c.held[other]; !ours || other.moving && n > 0 { // the finish that has it in hand decides about it
			continue
		}
		delete(c.held, other)
		lost = append(lost, other)
		is := func(o *claimed) bool { return o == other }
		c.waiting = slices.DeleteFunc(c.waiting, is)
		c.ended = slices.DeleteFunc(c.ended, is)
		c.quarantined = slices.DeleteFunc(c.quarantined, is)
		if other.cancel != nil {
			other.cancel(ErrClaimLost)
		}
	}
	c.room.Send()
	return lost
}

// takeLost returns the claims that were lost since the last call.
func (c *claims) takeLost() (lost []*claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, c.lost = c.lost, nil
	return lost
}

// cancel cancels the handler of m. If m waits for a handler, it is finished without one; in a lane it keeps its
// place.
func (c *claims) cancel(m *claimed, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.cancel != nil {
		m.cancel(cancelledError(queue.CancelReason(reason)))
		return
	}
	if n := c.lanes[m.key]; n != nil && slices.Contains(n.waiting, m) {
		m.msg.CallOff(queue.CancelReason(reason), m.msg.Err)
		return
	}
	if n := slices.Index(c.waiting, m); n >= 0 {
		c.waiting = slices.Delete(c.waiting, n, n+1)
		m.msg.CallOff(queue.CancelReason(reason), m.msg.Err)
		c.ended = append(c.ended, m)
		c.over.Send()
	}
}

// cancelledError is ErrCancelled with the reason.
type cancelledError string

func (e cancelledError) Error() string        { return string(e) }
func (e cancelledError) Is(target error) bool { return target == ErrCancelled }

// atOnce returns how many handlers may run now: the number that is set, or one while the breaker is open. The caller
// holds mu.
func (c *claims) atOnce() int {
	if c.terms.Breaker.Slow() {
		return min(c.most, 1)
	}
	return c.most
}

// endedSoFar returns how many handlers have ended since Run began.
func (c *claims) endedSoFar() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handled
}

// wanted returns how many messages to claim (want), and how many of these may be missing before the queue counts as
// empty (ahead). The caller expects that ending handlers will have ended when the claim returns, and the same number
// while the next claim is in flight; ahead is both. So fast handlers need not wait for a claim, and a message does
// not wait here behind a slow handler while a different process could handle it.
func (c *claims) wanted(ending int) (want, ahead int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, slow := &c.terms.Options, c.terms.Breaker.Slow()
	switch {
	case len(c.ended) >= o.BatchMax:
		return 0, 0 // the finisher is behind
	case slow && len(c.held) > 0 || c.most == 0:
		return 0, 0 // one message at a time while the breaker is open, and 0 while the endpoint is paused
	case o.Ordered && len(c.held) >= o.BatchMax+o.Concurrency:
		return 0, 0 // messages wait in their lanes
	case !slow:
		ahead = 2 * ending
	}
	return max(0, min(c.atOnce()-c.running-len(c.waiting)+ahead, o.BatchMax)), ahead
}

// claimed is a message that this process has claimed.
type claimed struct {
	msg     message.Message
	decoder *message.Decoder // of all messages of the same claim
	found   int              // rows that the claim has found, including rows left for lack of memory

	number  int         // of the claim: the row counts its claims
	rows    []time.Time // the due of its row: the end of the lease; several after an extension with an unknown outcome
	renewed time.Time   // by our clock, before the last statement known to have extended the lease; guarded by mu
	moving  bool        // a statement in flight may move its row, so no extension may; guarded by mu

	slot  *limit.Slot // of the endpoint's limit, nil without a limit
	key   string      // of its lane, "" without a lane
	lane  *lane       // the lane that it was claimed for, nil if it entered the lane with this claim
	death death       // of the processes that had it in hand before

	cancel  context.CancelCauseFunc // cancels its handler, while that runs; guarded by mu
	life    context.Context         // the context of its handler, which stop ends
	stop    context.CancelCauseFunc
	begun   time.Time
	beats   bool           // its handler runs and sends heartbeats for its run; guarded by mu
	release bool           // it returns to the queue as it was
	failed  message.Failed // attempts of this claim
	trouble finishTrouble  // of its finish
}

// death describes the processes that died with a message in hand.
type death struct {
	session saga.ID           // that had the message when its lease ended; zero without such a session
	crashes contention.Deaths // how many died, and how many of them had nothing else in hand
	counted bool              // session's death is the last of crashes: this claim or a revival of the lane added it
	alone   bool              // session had nothing else in hand
}

// finishTrouble describes errors of finishes of a message.
type finishTrouble struct {
	sent     bool             // a finish was sent, and its outcome is unknown
	aside    bool             // a finish waited in vain for a lock, or took too long: others come first; guarded by mu
	count    int              // failed finishes of this message alone, in a row
	timedOut time.Time        // when a finish that took too long was last counted
	success  *message.Message // the message before repeated errors made it a failure
}

// rehearses reports whether the failure that such errors made is written and rolled back, see outcome.ErrRehearsed.
func (t *finishTrouble) rehearses() bool {
	return t.success != nil && t.count == contention.FreeTroubles+1
}

// counts reports whether a failed finish of one message alone counts against the message. A finish may take only a
// part of the lease, so a database that is slow for a while makes one finish after the other fail. Timeouts therefore
// count once per contention.CommitTimeout, as if each finish had that much time.
func (t *finishTrouble) counts(timedOut bool, now time.Time) bool {
	if !timedOut {
		return true
	}
	if now.Sub(t.timedOut) < contention.CommitTimeout {
		return false
	}
	t.timedOut = now
	return true
}

// suspicion is the judgement on a message before it is handled, by its deaths.
type suspicion uint8

const (
	unsuspected suspicion = iota
	suspected             // it is to be run alone
	decided               // it needs no handler, or has killed enough processes
)

// mayDie is the number of processes that may die with a message in hand before it is run alone.
const mayDie = 1

// judge classifies m before it is handled. It makes m a dead letter if enough processes died with it.
func (m *claimed) judge(maxCrashes int) suspicion {
	f := m.death.crashes
	switch {
	case m.msg.Fate != message.FateLeft:
		return decided
	case f.Counted <= mayDie:
		return unsuspected
	case f.Guilty(maxCrashes):
		m.msg.Die("process died", fmt.Errorf("%w: %d processes died, %d of them with no other message of the endpoint",
			message.ErrProcessDied, f.Counted, f.Alone))
		return decided
	}
	return suspected
}
