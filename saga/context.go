package saga

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Context is the context.Context of a handler, and records the decisions of its step. It belongs to the handler's
// goroutine and is valid until the handler returns; a later call panics, because the step is already decided. Only
// Deadline, Done, Err and Value may be called later.
//
// Send, Publish, Reply and ReplyToOriginator encode the message at once and return its id. A fault (a body that is too
// large, text that is not UTF-8, a timeout without a handler) is recorded, and the step fails with it permanently,
// whatever the handler returns.
type Context struct {
	ctx     context.Context
	rt      *Runtime
	def     *Definition
	id      ID // of the instance; zero in IfMissingDo
	key     string
	isNew   bool
	missing bool // IfMissingDo runs: there is no instance

	panicked bool // Runtime.Outgoing has panicked; the first fault is that panic

	originator Originator
	pending    []Pending // a copy: the session keeps its own until the step has succeeded
	out        []Outgoing
	outBytes   int // of the bodies, including withdrawn ones
	cancelled  []Cancelled
	complete   bool

	faults []error
	closed atomic.Bool // atomic, so that a late goroutine panics instead of racing
}

// Deadline returns the deadline of the runtime's context. Deadline, Done, Err and Value may be called after the
// handler has returned, because derived contexts may outlive it.
func (c *Context) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done is closed when the handler should stop.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns the reason why Done was closed.
func (c *Context) Err() error { return c.ctx.Err() }

// Value returns the value of the runtime's context for key.
func (c *Context) Value(key any) any { return c.ctx.Value(key) }

// Info describes the message in hand.
func (c *Context) Info() Info { c.alive("Info"); return c.rt.In.Info }

// Key returns the instance's key, also in handlers of timeouts and answers.
func (c *Context) Key() string { c.alive("Key"); return c.key }

// Instance returns the instance's id, or zero in IfMissingDo. A key that starts again after Complete gets a new id.
func (c *Context) Instance() ID { c.alive("Instance"); return c.id }

// IsNew reports whether this step starts the instance.
func (c *Context) IsNew() bool { c.alive("IsNew"); return c.isNew }

// Now returns the database's time when the message was taken.
func (c *Context) Now() time.Time { c.alive("Now"); return c.rt.Now }

// Complete ends the instance when the step succeeds, and removes its pending timeouts. Without Options.Remember the
// key can start again at once: a later message that may start an instance starts a new one, with an empty state.
func (c *Context) Complete() {
	c.alive("Complete")
	if c.needInstance("Complete") {
		c.complete = true
	}
}

// alive panics if the handler has returned: the step is already decided.
func (c *Context) alive(verb string) {
	if c.closed.Load() {
		panic("saga: Context." + verb + " was called after the handler returned; finish before returning, or copy " +
			"the values you need")
	}
}

// fault records a mistake of the handler. It keeps the first five, because a handler in a loop makes many.
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

// run calls the handler and returns the outcome without the instance's part.
func (c *Context) run(handler func() error) Outcome {
	if c.ctx == nil {
		return Outcome{Err: errors.New("saga: a step needs a context")}
	}
	return c.outcome(c.call(handler))
}

func (c *Context) call(handler func() error) (err error) {
	defer c.closed.Store(true)
	defer caught(&err)
	if c.rt.Around == nil {
		return Examined(handler())
	}
	return Examined(c.rt.Around(c.ctx, func(ctx context.Context) error {
		c.ctx = ctx // the handler gets the values that a middleware added
		return handler()
	}))
}

func (c *Context) outcome(err error) Outcome {
	if err == nil && len(c.faults) == 0 { // first, because errors.As below allocates
		return Outcome{Out: c.out, Cancelled: c.cancelled}
	}
	var panicked *PanicError
	var discard *DiscardError
	switch {
	case errors.As(err, &panicked):
		return Outcome{Err: err}
	case c.panicked:
		return Outcome{Err: c.faults[0]}
	case len(c.faults) > 0:
		return Outcome{Err: faultError(c.faults, err)}
	case isNil(err):
		return Outcome{Out: c.out, Cancelled: c.cancelled}
	case errors.As(err, &discard):
		return Outcome{Discard: discard.Reason}
	}
	return Outcome{Err: err}
}

// faultError joins the faults. It keeps the handler's own error as text only: errors.As would otherwise find its
// RetryAfter in a permanent failure.
func faultError(faults []error, returned error) error {
	err := errors.Join(faults...)
	if !isNil(returned) {
		err = fmt.Errorf("%w (the handler returned: %v)", err, returned)
	}
	return &PermanentError{Err: err}
}

// withdraw removes a message that this step has sent, and reports whether it found one.
func (c *Context) withdraw(id ID) bool {
	for i := len(c.out) - 1; i >= 0; i-- {
		if c.out[i].Info.ID == id {
			c.out = slices.Delete(c.out, i, i+1)
			return true
		}
	}
	return false
}
