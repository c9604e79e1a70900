package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/saga"
)

// Context is what a plain handler gets: a context.Context by delegation, and the sends of a saga.Context.
// It is valid until the handler returns; a send after that panics. It belongs to the handler's goroutine.
//
// Send and its sisters encode at once and return the new id. A fault (no route, a body that is too large,
// text that is not UTF-8) is remembered: the step fails with it, permanently, whatever the handler returned.
type Context struct {
	ctx    context.Context
	rt     saga.Runtime
	out    []saga.Outgoing
	faults []error

	outBytes int // of the bodies
	slot     *limit.Slot
	closed   atomic.Bool
}

// Deadline is that of the step: StepTimeout after it began.
func (c *Context) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done is closed when the handler should stop.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err is why Done was closed.
func (c *Context) Err() error { return c.ctx.Err() }

// Value looks into the step's context.
func (c *Context) Value(key any) any { return c.ctx.Value(key) }

// Info describes the message in hand.
func (c *Context) Info() saga.Info { return c.rt.In.Info }

// Now is the database's clock when the message was taken.
func (c *Context) Now() time.Time { return c.rt.Now }

// Send sends a command to the one endpoint that handles its kind.
func (c *Context) Send(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.emit(saga.Command, m, o)
}

// Publish sends an event to every endpoint that handles its kind.
func (c *Context) Publish(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.emit(saga.Event, m, o)
}

// Reply answers the message in hand: it goes to the endpoint that sent it, and to the saga instance there that
// asked, if one did. It is a fault if the message came from outside.
func (c *Context) Reply(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.emit(saga.Answer, m, o)
}

const (
	mostOut      = 10_000   // messages of one step
	mostOutBytes = 64 << 20 // and their bodies together
)

func (c *Context) emit(intent saga.Intent, m saga.Message, o []saga.SendOption) saga.ID {
	if c.closed.Load() {
		panic("bus: a message was sent after the handler returned; finish before returning")
	}
	out, err := c.rt.Compose(intent, m, o...)
	if err == nil && len(c.out) >= mostOut {
		err = fmt.Errorf("%s: more than %d messages in one step: %w", out.Info.Kind, mostOut, saga.ErrTooLarge)
	}
	if c.outBytes += len(out.Body); err == nil && c.outBytes > mostOutBytes {
		err = fmt.Errorf("%s: more than %d bytes of messages in one step: %w", out.Info.Kind, mostOutBytes,
			saga.ErrTooLarge)
	}
	if err != nil {
		if len(c.faults) < 5 {
			c.faults = append(c.faults, err)
		}
		return saga.ID{}
	}
	c.out = append(c.out, out)
	return out.Info.ID
}

// outcome judges what the handler returned.
func (c *Context) outcome(err error) saga.Outcome {
	if err == nil && len(c.faults) == 0 { // first, because errors.As below makes garbage
		return saga.Outcome{Out: c.out}
	}
	var panicked *saga.PanicError
	var discard *saga.DiscardError
	switch {
	case errors.As(err, &panicked):
		return saga.Outcome{Err: err}
	case len(c.faults) > 0:
		fault := errors.Join(c.faults...)
		if !saga.Succeeded(err) {
			fault = fmt.Errorf("%w (the handler returned: %v)", fault, err)
		}
		return saga.Outcome{Err: &saga.PermanentError{Err: fault}}
	case saga.Succeeded(err):
		return saga.Outcome{Out: c.out}
	case errors.As(err, &discard):
		return saga.Outcome{Discard: discard.Reason}
	}
	return saga.Outcome{Err: err}
}
