package bus

import (
	"bytes"
	"context"
	"errors"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/saga"
)

// ErrLeave, returned by a raw handler, ends the batch before this message: it stays at its place in the queue,
// with nothing known against it and no attempt counted, and so does everything behind it. What came before it in the
// batch commits. The message is taken again soon, by whoever comes first.
var ErrLeave = errors.New("leave the message in the queue")

// HandleRaw makes the endpoint hand f every message whose kind none of its other parts handles, as bytes: for bridges,
// relays and programs that do not have the Go types. There are no unknown kinds in such an endpoint. It is subscribed
// to the kinds given here, and to no other: what is addressed to it by name (saga.To) arrives in any case.
//
// f runs inside the batch's transaction, which it does not see: at most StepTimeout, while other messages of the batch
// wait for their commit. It must not keep d, nor its Body, which is a copy for this attempt. Its errors go to the
// endpoint's policy, but for ErrLeave.
func HandleRaw(f func(ctx *Context, d *saga.Delivery) error, kinds ...string) Part {
	return part(func(h *handlers.Table) {
		switch {
		case f == nil:
			h.Fault("HandleRaw: the handler is nil")
			return
		case h.Raw != nil:
			h.Fault("HandleRaw is given twice: one handler gets what no other part handles")
			return
		}
		h.Raw = &handlers.Consumer{What: "HandleRaw",
			Raw: plain(func(c *Context, _ *handlers.Call, d *saga.Delivery) error { return f(c, d) })}
		for _, kind := range kinds {
			if err := saga.CheckName(kind); err != nil {
				h.Fault("HandleRaw: kind: %w", err)
				continue
			}
			h.Subscribe(kind)
		}
	})
}

// handleRaw runs the raw handler. A nil outcome leaves m, and what is behind it, in the queue.
func (s *stepper) handleRaw(ctx context.Context, m *delivery.Message) *saga.Outcome {
	own := m.Delivery
	own.Body = s.copyOf(own.Body)
	sent, err := m.Consumer.Raw(ctx, handlers.Call{Runtime: &s.in.Runtime, Delivery: &own, Handlers: s.in.To.Handlers})
	if errors.Is(err, ErrLeave) {
		s.in.Late = true
		return nil
	}
	out := sent.Outcome(err)
	if out.Err == nil {
		out.Err = s.in.Route(ctx, out.Out)
	}
	return &out
}

const mostLent = 64 << 10 // a larger body gets memory of its own

// copyOf is a copy of a body for one call of a raw handler, which may write into it.
func (s *stepper) copyOf(body []byte) []byte {
	if len(body) > mostLent {
		return bytes.Clone(body)
	}
	s.lentBody = append(s.lentBody[:0], body...)
	return s.lentBody
}
