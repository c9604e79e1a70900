package saga

import (
	"fmt"
	"slices"
	"time"
)

// Timeout sends m to this instance after d, by the database's clock and never early; d ≤ 0 means now. Each call adds
// a timeout; a second call with the same Named moves it. Pending timeouts are in the row of the instance, so
// cancelling, moving and completing need no search. Exceeding Limits.MaxDelay or Limits.MaxPending, and a kind
// without OnTimeout, are faults.
func (c *Context) Timeout(d time.Duration, m Message, o ...TimeoutOption) {
	c.alive("Timeout")
	if limit := c.rt.Limits.maxDelay(); d > limit {
		c.fault("timeout: delay %v, limit %v", d, limit)
		return
	}
	c.ask(roundUp(c.rt.clock().Add(max(d, 0))), m, o)
}

// TimeoutAt sends m to this instance at t; a past t means now. The zero time, and a year outside 1 to 9999, are faults.
func (c *Context) TimeoutAt(t time.Time, m Message, o ...TimeoutOption) {
	c.alive("TimeoutAt")
	due, err := c.rt.dueAt(t)
	if err != nil {
		c.fault("timeout: %w", err)
		return
	}
	if due.IsZero() {
		due = roundUp(c.rt.clock())
	}
	c.ask(due, m, o)
}

// CancelTimeout cancels the timeout with this name, and reports whether it was pending. In the handler of a timeout
// that timeout is no longer pending.
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

// Timeouts returns a copy of the pending timeouts of the instance, with the changes of this step.
func (c *Context) Timeouts() []Pending {
	c.alive("Timeouts")
	return slices.Clone(c.pending)
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
	out, err := c.rt.compose(Timer, m, nil)
	if err != nil {
		c.fault("timeout: %w", err)
		return
	}
	if c.def.timer[out.Info.Kind] == nil {
		c.fault("timeout %s: saga %s has no OnTimeout for it; it has: %s", out.Info.Kind, c.def.name,
			c.def.timerKinds())
		return
	}
	out.Info.Due, out.Info.Instance, out.Info.Origin = due, c.id, c.id
	c.CancelTimeout(name)
	if limit := c.rt.Limits.maxPending(); len(c.pending) >= limit {
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

// drop removes a pending timeout. If this step has set it, its message is withdrawn; else it is reported in Cancelled.
func (c *Context) drop(p Pending) {
	if !c.withdraw(p.ID) {
		c.cancelled = append(c.cancelled, Cancelled{ID: p.ID, Due: p.Due})
	}
}
