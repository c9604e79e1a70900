package batch

import (
	"bytes"
	"context"
	"errors"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// handleRaw runs the raw handler. A nil outcome leaves m, and the messages behind it, in the queue.
func (s *stepper) handleRaw(ctx context.Context, m *message.Message) *saga.Outcome {
	own := saga.Delivery{Info: m.Delivery.Info, Body: s.copyOf(m.Delivery.Body)}
	out, err := s.in.Call(ctx, m.Consumer.Raw, handlers.Call{Runtime: &s.in.Runtime, Delivery: &own,
		Handlers: s.in.To.Handlers})
	if errors.Is(err, message.ErrLeave) {
		s.in.Stop()
		return nil
	}
	return &out
}

const mostLent = 64 << 10 // a larger body gets memory of its own

// copyOf returns a copy of a body for one call of a raw handler, which may write into it.
func (s *stepper) copyOf(body []byte) []byte {
	if len(body) > mostLent {
		return bytes.Clone(body)
	}
	s.lentBody = append(s.lentBody[:0], body...)
	return s.lentBody
}
