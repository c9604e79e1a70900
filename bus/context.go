package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/saga"
)

// Context is what a plain handler gets: a context.Context by delegation, and the sends of a saga.Context.
// It is valid until the handler returns; a send after that panics. It belongs to the handler's goroutine.
//
// Send and its sisters encode at once and return the new id. A fault (no route, a body that is too large,
// text that is not UTF-8) is remembered: the step fails with it, permanently, whatever the handler returned.
type Context struct {
	ctx  context.Context
	sent handlers.Sends
	slot *limit.Slot
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
func (c *Context) Info() saga.Info { return c.sent.Runtime.In.Info }

// Now is the database's clock when the message was taken.
func (c *Context) Now() time.Time { return c.sent.Runtime.Now }

// Send sends a command to the one endpoint that handles its kind.
func (c *Context) Send(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(saga.Command, m, o)
}

// Publish sends an event to every endpoint that handles its kind.
func (c *Context) Publish(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(saga.Event, m, o)
}

// Reply answers the message in hand: it goes to the endpoint that sent it, and to the saga instance there that
// asked, if one did. It is a fault if the message came from outside.
func (c *Context) Reply(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(saga.Answer, m, o)
}

// Slot is which slot of the endpoint's limit the handler holds, and the slot's epoch, which grows with each grant: give
// the epoch to a system outside that can refuse smaller ones. Both are 0 if the endpoint has no limit, or is not
// leased.
func (c *Context) Slot() (no int, epoch int64) {
	if c.slot == nil {
		return 0, 0
	}
	return c.slot.No, c.slot.Epoch
}

// plain makes a handler that engines call from f, which gets a Context. It is the only place that makes one.
func plain(f func(c *Context, of *handlers.Call, d *saga.Delivery) error) func(context.Context,
	handlers.Call) (*handlers.Sends, error) {
	return func(ctx context.Context, of handlers.Call) (*handlers.Sends, error) {
		c := &Context{ctx: ctx, slot: of.Slot}
		c.sent.Begin(&of)
		err := of.Run(ctx, &c.sent, func(ctx context.Context, d *saga.Delivery) error {
			c.ctx = ctx
			return f(c, &of, d)
		})
		return &c.sent, err
	}
}
