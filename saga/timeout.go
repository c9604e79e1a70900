package saga

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Timeout asks for m after d, counted by the store's clock and never early; d ≤ 0 is now. Without Named every
// call makes one more; with Named a second call under the name moves the first. Pending ones live in the
// instance's own row, so that cancelling, moving and completing need no search.
func (c *Context) Timeout(d time.Duration, m Message, o ...TimeoutOption) {
	c.alive("Timeout")
	if limit := c.turn.Limits.maxDelay(); d > limit {
		c.fault("timeout: delay %v, limit %v", d, limit)
		return
	}
	c.ask(roundUp(c.clock().Add(max(d, 0))), m, o)
}

// TimeoutAt asks for m at t; a past t is now. The zero time, or a year outside 1 to 9999, is a fault.
func (c *Context) TimeoutAt(t time.Time, m Message, o ...TimeoutOption) {
	c.alive("TimeoutAt")
	due, err := c.turn.dueAt(t)
	if err != nil {
		c.fault("timeout: %w", err)
		return
	}
	if due.IsZero() {
		due = roundUp(c.clock())
	}
	c.ask(due, m, o)
}

// CancelTimeout takes back the timeout with this name, and reports whether there was one. From inside the
// handler of that very timeout there is none any more.
func (c *Context) CancelTimeout(name string) bool {
	c.alive("CancelTimeout")
	if name == "" || !c.needInstance("CancelTimeout") {
		return false
	}
	i := slices.IndexFunc(c.pending, func(p Pending) bool { return p.Name == name })
	if i < 0 {
		return false
	}
	c.drop(c.pending[i])
	c.pending = slices.Delete(c.pending, i, i+1)
	return true
}

// Timeouts lists what the instance waits for, as this step would leave it.
func (c *Context) Timeouts() []Pending {
	c.alive("Timeouts")
	return slices.Clone(c.pending)
}

func (c *Context) clock() time.Time {
	if c.turn.Clock == nil {
		return c.turn.Now
	}
	return c.turn.Clock()
}

func (c *Context) ask(due time.Time, m Message, o []TimeoutOption) {
	if !c.needInstance("Timeout") {
		return
	}
	name, err := timeoutName(o)
	if err != nil {
		c.fault("timeout: %w", err)
		return
	}
	out, err := c.turn.compose(Timer, m, nil)
	if err != nil {
		c.fault("timeout: %w", err)
		return
	}
	if c.def.timer[out.Info.Kind] == nil {
		c.fault("timeout %s: saga %s has no OnTimeout for it; it has: %s", out.Info.Kind, c.def.name, c.timerKinds())
		return
	}
	out.Info.Due, out.Info.Instance, out.Info.Origin = due, c.id, c.id
	c.CancelTimeout(name)
	if limit := c.turn.Limits.maxPending(); len(c.pending) >= limit {
		c.fault("timeout %s: more than %d pending: %w", out.Info.Kind, limit, ErrTooLarge)
		return
	}
	if id := c.add(out); !id.IsZero() {
		c.pending = append(c.pending, Pending{Name: name, Kind: out.Info.Kind, Due: due, ID: id})
	}
}

func timeoutName(o []TimeoutOption) (string, error) {
	var s timeoutSettings
	for _, opt := range o {
		if opt == nil {
			return "", fmt.Errorf("an option is nil")
		}
		if err := opt.timeout(&s); err != nil {
			return "", err
		}
	}
	return s.name, nil
}

func (c *Context) timerKinds() string {
	kinds := strings.Join(slices.Collect(c.def.timers()), ", ")
	if kinds == "" {
		return "none"
	}
	return kinds
}

// drop makes a pending timeout not happen: it is unsaid when this step asked for it, else reported.
func (c *Context) drop(p Pending) {
	if !c.withdraw(p.ID) {
		c.cancelled = append(c.cancelled, Cancelled{ID: p.ID, Due: p.Due})
	}
}
