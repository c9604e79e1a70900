package message

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
)

var (
	// ErrMissing is the error of a message that found no instance, if the saga treats that as a failure.
	ErrMissing = errors.New("the message found no saga instance")
	// ErrLeave, returned by a raw handler, leaves its message and the messages behind it in the queue.
	ErrLeave = errors.New("leave the message in the queue")
)

// Call runs a handler that does not belong to a saga. It returns the outcome of the step, and the handler's error.
func (d *Decoder) Call(
	ctx context.Context, handler func(context.Context, handlers.Call) (*handlers.Sends, error), of handlers.Call,
) (saga.Outcome, error) {
	sent, err := handler(ctx, of)
	d.Hand.Return()
	return d.Outcome(ctx, sent, err), err
}

// Outcome returns the outcome of a handler that does not belong to a saga, after it returned err. It fails if there is
// no queue for a message that the handler sends.
func (d *Decoder) Outcome(ctx context.Context, sent *handlers.Sends, err error) saga.Outcome {
	out := sent.Outcome(err)
	if out.Err == nil {
		out.Err = d.route(ctx, out.Out)
	}
	return out
}

// Step steps m on its instance, with the middleware of the endpoint around the handler.
func (d *Decoder) Step(ctx context.Context, m *Message) saga.Outcome {
	rt := d.runtimeOf(m)
	rt.Around = timed
	if len(d.To.Handlers.Middleware) > 0 {
		rt.Around = func(ctx context.Context, handler func(context.Context) error) error {
			call := func(ctx context.Context, d *saga.Delivery) error {
				if !bytes.Equal(d.Body, rt.In.Body) {
					rt.In.Body = d.Body
				}
				return handler(ctx)
			}
			return handlers.InTime(ctx, d.To.Handlers.Around(ctx, &m.Delivery, call))
		}
	}
	out := m.Instance.Session.Step(ctx, rt, m.Call)
	d.Hand.Return()
	m.Instance.Step(out.Completed)
	for _, field := range out.Unknown {
		warnOfField(d, m, field)
	}
	return out
}

const fieldRemedy = "if the field was renamed, removed or changed its meaning, stop this program, raise " +
	"StateVersion and give an Upcast; if a newer program has added it, finish the deploy"

// warnOfField logs once for each saga and field that a state was stored by a program with a field more.
func warnOfField(d *Decoder, m *Message, field string) {
	name, key := m.Instance.Name()
	if !d.To.Memory.NewField(name, field) {
		return
	}
	args := []any{"endpoint", d.To.Name, "saga", name, "key", key, "field", wire.Shown(field),
		"state_version", m.Instance.Def.Options().StateVersion, "remedy", fieldRemedy}
	d.To.Log.Warn("edda: a stored state has a field that the program does not have, and loses it", args...)
}

func timed(ctx context.Context, handler func(context.Context) error) error {
	return handlers.InTime(ctx, handler(ctx))
}

const (
	absentWait  = time.Second
	absentTries = 3
)

// Missing decides about a message that found no instance and may not start one. An instance with that key may be
// about to be committed: its absence counts only after several tries. An instance that was named by its id has
// existed, so it has ended.
func (d *Decoder) Missing(ctx context.Context, m *Message) {
	if m.Call.Instance().IsZero() && m.Conflict < absentTries {
		m.Conflict++
		m.PutBack(absentWait, ErrMissing)
		return
	}
	d.SettleMissing(ctx, m, "no instance")
}

// SettleMissing decides about a message whose instance does not exist any more.
func (d *Decoder) SettleMissing(ctx context.Context, m *Message, reason string) {
	d.Enter(m, time.Now())
	out, ok := m.Call.StepMissing(ctx, d.runtimeOf(m))
	if d.Hand.Return(); ok {
		d.Decide(m, out)
		return
	}
	name, key := m.Instance.Name()
	err := fmt.Errorf("saga %s, key %q: %s: %w", name, key, reason, ErrMissing)
	switch m.Call.Missing() {
	case saga.MissingRetry:
		d.Fail(m, err)
	case saga.MissingDeadLetter:
		m.Die(reason, err)
	default:
		m.Drop(reason)
	}
}
