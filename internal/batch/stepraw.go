package batch

import (
	"bytes"
	"context"
	"errors"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/saga"
)

// errLeave, returned by a raw handler, ends the batch before its message.
var ErrLeave = errors.New("leave the message in the queue")

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
