package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/edda-go/edda/saga"
)

// Handle makes the endpoint handle M with f outside of any transaction, for work that takes long or talks to others.
// Such an endpoint is *leased*: it claims a message for EndpointOptions.Lease and extends that while f runs, so that a
// message whose process dies is taken again when the lease has ended. What f sends with ctx is written with the
// message's end, in one transaction, which fails when the claim was lost meanwhile: then nothing of it is sent. Effects
// outside the database are at least once: give ctx.Info().ID to the other side as an idempotency key.
//
// The context of f ends after StepTimeout, when the claim was lost (its cause is ErrClaimLost), when the message
// was cancelled by Bus.Cancel or its run is over (ErrCancelled), and when Run has drained in vain (ErrDrain).
//
// Handlers of one endpoint are either leased or in transactions: Handle with Saga, HandleTx or HandleRaw is a
// fault of NewEndpoint. Give them two endpoints.
func Handle[M saga.Message](f func(*Context, M) error, o ...HandleOption[M]) Part {
	return part(func(h *handlers) {
		kind := kindOf[M]()
		if f == nil {
			h.fault("Handle of %s: the handler is nil", kind)
			return
		}
		h.leased = true
		c := &consumer{kind: kind, what: "Handle of " + reflect.TypeFor[M]().String(),
			leased: func(ctx *Context, body []byte, codec saga.Codec) error {
				var m M
				if err := codec.Decode(body, &m); err != nil {
					return saga.Permanent(fmt.Errorf("decode %s: %w", kind, err))
				}
				return f(ctx, m)
			},
			key: keyOption(kind, o)}
		if h.add(c) {
			h.subscribe(kind)
		}
	})
}

// checkModes: a message is either consumed in the transaction of its effects, or claimed. An endpoint cannot do both to
// one queue.
func (h *handlers) checkModes() {
	if h.leased && (h.hasTx || h.raw != nil || len(h.sagas) > 0) {
		h.fault("it mixes Handle, which runs outside of transactions, with handlers that run inside (Saga, " +
			"HandleTx, HandleRaw): make two endpoints of it")
	}
}

// handle runs the handler of one claimed message, and decides what becomes of it.
func (l *leased) handle(ctx context.Context, c *claimed) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !l.begin(c, cancel) {
		l.lose(c) // nobody else would: the loop that extends may find the row as it was, and keep it for ever
		return
	}
	limited, end := context.WithTimeout(ctx, l.options.StepTimeout)
	defer end()
	if c.fired && !l.beginRun(limited, c) {
		return
	}
	c.begun = time.Now()
	out := saga.Outcome{Err: errExited}
	returned := false
	defer func() {
		if !returned { // the handler has ended this goroutine, and another takes its place
			l.judge(ctx, c, out)
			l.handling.Go(func(work context.Context) error { l.runOneAfterAnother(work, l.next()); return nil })
		}
	}()
	out = c.call(limited)
	returned = true
	c.took = time.Since(c.begun)
	l.judge(ctx, c, out)
}

// call runs the handler with what it needs of its own: others of the same claim run at the same time.
func (c *claimed) call(ctx context.Context) saga.Outcome {
	b := c.batch
	turn := b.lent
	turn.In = c.delivery
	own := &Context{ctx: ctx, rt: turn, slot: c.slot}
	out := own.outcome(c.callHandler(ctx, own))
	if out.Err == nil {
		out.Err = b.route(ctx, out.Out)
	}
	return out
}

func (c *claimed) callHandler(ctx context.Context, own *Context) (err error) {
	defer recovered(&err)
	defer own.closed.Store(true)
	b := c.batch
	call := func(ctx context.Context, d *saga.Delivery) error {
		own.ctx = ctx
		return c.consumer.leased(own, d.Body, b.bus.codec)
	}
	return saga.Examined(inTime(ctx, b.handlers.around(ctx, &c.delivery, call)))
}

// judge turns an outcome into a fate. What ended the handler's context from outside counts before what the
// handler made of it.
func (l *leased) judge(ctx context.Context, c *claimed, out saga.Outcome) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrClaimLost):
		l.lose(c)
		return
	case out.Err != nil && errors.Is(cause, ErrCancelled):
		c.err = out.Err
		c.callOff(cause.Error())
	case out.Err != nil && cause != nil: // the drain has cancelled it, which says nothing about the message
		c.release = true
	default:
		// others of the claim are judged at the same time
		own := batch{Endpoint: l.Endpoint, now: c.batch.now, begun: c.batch.begun}
		own.decide(&c.message, out)
		c.failures, c.failure, c.pauses = own.failures, own.failure, own.pausing != nil
	}
	l.end(c)
}
