package saga

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Context is what a handler gets: a context.Context by delegation (no embedded field to replace) and the
// recorder of the step's decisions. It is valid until the handler returns; asking it for something after that
// panics, for the step is already decided. It belongs to the handler's goroutine.
//
// Send and its sisters encode at once and return the new id. A fault (body too large, text that is not UTF-8,
// an undeclared timeout) is remembered: the step fails with it after the handler returned, permanently,
// whatever the handler returned.
type Context struct {
	ctx     context.Context
	turn    *Turn
	def     *Definition
	id      ID // of the instance; zero in IfMissingDo
	key     string
	isNew   bool
	missing bool // IfMissingDo runs: there is no instance

	originator Originator
	pending    []Pending // a copy: the session keeps its own until the step succeeded
	out        []Outgoing
	outBytes   int // of the bodies, also of those withdrawn
	cancelled  []Cancelled
	complete   bool

	faults []error
	closed atomic.Bool // atomic, so that a late goroutine meets the panic and not a data race
}

// Deadline is that of the runtime's context. It, Done, Err and Value stay usable after the handler returned,
// because contexts derived from this one may outlive it.
func (c *Context) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done is closed when the handler should stop.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err is why Done was closed.
func (c *Context) Err() error { return c.ctx.Err() }

// Value looks into the runtime's context.
func (c *Context) Value(key any) any { return c.ctx.Value(key) }

// Info describes the message in hand.
func (c *Context) Info() Info { c.alive("Info"); return c.turn.In.Info }

// Key is the instance's key, also in timeouts and answers.
func (c *Context) Key() string { c.alive("Key"); return c.key }

// Instance is the instance's id: new for every life of a key, zero in IfMissingDo.
func (c *Context) Instance() ID { c.alive("Instance"); return c.id }

// IsNew reports whether this step starts the instance.
func (c *Context) IsNew() bool { c.alive("IsNew"); return c.isNew }

// Now is the store's clock when the message was taken.
func (c *Context) Now() time.Time { c.alive("Now"); return c.turn.Now }

// Complete ends the instance when the step ends. Its pending timeouts go with it. Nothing remembers the key: a message
// that may start an instance and comes afterwards starts a new one, with an empty state. Where such a message can
// come late, keep the instance alive until it cannot, by a timeout that completes it.
func (c *Context) Complete() {
	c.alive("Complete")
	if c.needInstance("Complete") {
		c.complete = true
	}
}

// alive panics when the handler is over: what is asked now can neither happen nor fail the step.
func (c *Context) alive(verb string) {
	if c.closed.Load() {
		panic("saga: Context." + verb + " was called after the handler returned; finish before returning, or copy " +
			"what is needed")
	}
}

// fault remembers an error of the handler's own making. Some are kept: a handler that loops makes many.
func (c *Context) fault(format string, args ...any) {
	const kept = 5
	if len(c.faults) < kept {
		c.faults = append(c.faults, fmt.Errorf(format, args...))
	}
}

func (c *Context) needInstance(verb string) bool {
	if c.missing {
		c.fault("%s in IfMissingDo: there is no instance", verb)
	}
	return !c.missing
}

// run calls the handler and turns what it returned into an outcome without the instance's part.
func (c *Context) run(handler func() error) Outcome {
	if c.ctx == nil {
		return Outcome{Err: errors.New("saga: a step needs a context")}
	}
	return c.outcome(c.call(handler))
}

func (c *Context) call(handler func() error) (err error) {
	defer c.closed.Store(true)
	defer caught(&err)
	if c.turn.Around == nil {
		return Examined(handler())
	}
	return Examined(c.turn.Around(c.ctx, func(ctx context.Context) error {
		c.ctx = ctx // what a middleware put into the context is seen by the handler
		return handler()
	}))
}

func (c *Context) outcome(err error) Outcome {
	if err == nil && len(c.faults) == 0 { // first, because errors.As below makes garbage
		return Outcome{Out: c.out, Cancelled: c.cancelled}
	}
	var panicked *PanicError
	var discard *DiscardError
	switch {
	case errors.As(err, &panicked):
		return Outcome{Err: err}
	case len(c.faults) > 0:
		return Outcome{Err: c.faultError(err)}
	case isNil(err):
		return Outcome{Out: c.out, Cancelled: c.cancelled}
	case errors.As(err, &discard):
		return Outcome{Discard: discard.Reason}
	}
	return Outcome{Err: err}
}

// faultError keeps the handler's own error as text only: found by errors.As, its RetryAfter would argue with
// the permanence of the fault.
func (c *Context) faultError(returned error) error {
	err := errors.Join(c.faults...)
	if !isNil(returned) {
		err = fmt.Errorf("%w (the handler returned: %v)", err, returned)
	}
	return &PermanentError{Err: err}
}

// withdraw takes back a message that this same step asked for, and reports whether it had.
func (c *Context) withdraw(id ID) bool {
	for i := len(c.out) - 1; i >= 0; i-- {
		if c.out[i].Info.ID == id {
			c.out = slices.Delete(c.out, i, i+1)
			return true
		}
	}
	return false
}
