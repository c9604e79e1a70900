package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/saga"
)

// Context is the context of a handler that is not a saga: a context.Context by delegation, and the sends of a
// saga.Context. It is valid until the handler returns; a send after that panics. It belongs to the handler's
// goroutine, and is not safe for concurrent use.
//
// Send, Publish and Reply encode at once and return the new id. A fault (no route, a body that is too large, text
// that is not UTF-8) is recorded, and the step fails with it permanently, whatever the handler returns.
type Context struct {
	ctx  context.Context
	sent handlers.Sends
	slot *limit.Slot
}

// Deadline returns the deadline of the step: StepTimeout after it began.
func (c *Context) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done returns a channel that is closed when the handler should stop.
func (c *Context) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil until Done is closed, then the reason.
func (c *Context) Err() error { return c.ctx.Err() }

// Value returns the value of the step's context for key.
func (c *Context) Value(key any) any { return c.ctx.Value(key) }

// Info returns the description of the message in hand.
func (c *Context) Info() saga.Info { return c.sent.Runtime.In.Info }

// Now returns the database's time when the message was taken.
func (c *Context) Now() time.Time { return c.sent.Runtime.Now }

// Send sends a command to the one endpoint that handles its kind.
func (c *Context) Send(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(c.ctx, saga.Command, m, o)
}

// Publish sends an event to every endpoint that handles its kind.
func (c *Context) Publish(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(c.ctx, saga.Event, m, o)
}

// Reply answers the message in hand: the answer goes to the endpoint that sent it and, if a saga instance sent it, to
// that instance. Reply is a fault if the message came from outside.
func (c *Context) Reply(m saga.Message, o ...saga.SendOption) saga.ID {
	return c.sent.Emit(c.ctx, saga.Answer, m, o)
}

// LeaveRun leaves the run of the message open when the handler succeeds, for work that continues in a different
// program. That program calls scheduler.Reports.Beat while it works and scheduler.Reports.End when it is done. If no
// beat comes for scheduler.Options.LostAfter, the attempt is lost, and the run is sent again while its manifest has
// retries. LeaveRun has no effect on a message that no manifest emitted. It panics after the handler has returned.
func (c *Context) LeaveRun() { c.sent.LeaveRun() }

// Slot returns the slot of the endpoint's limit that the handler holds, and the slot's epoch. The epoch grows with
// each grant: give it to an outside system that can refuse smaller epochs. Both are 0 if the endpoint has no limit,
// or is not leased.
func (c *Context) Slot() (no int, epoch int64) {
	if c.slot == nil {
		return 0, 0
	}
	return c.slot.No, c.slot.Epoch
}

// plain makes a handler for the engines from f. No other function makes a Context.
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
