package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// stepper calls the handlers of the messages of a batch.
type stepper struct {
	engine *Engine
	in     *message.Decoder
	loader *loader
	shared *sharedTx
	blame  *blame

	begun    bool            // all messages are decoded
	slow     bool            // one message at a time: no message is tried twice in this batch
	ctx      context.Context // of the steps that run now, see stepContext
	end      context.CancelFunc
	since    time.Time
	lentBody []byte // a copy of the body in hand, for a raw handler
}

func (s *stepper) reset(slow bool) { s.slow, s.begun = slow, false }

// step handles each message in order, in memory. A message that failed and is to be retried at once comes again at
// the end, if the batch's time allows. An error is the batch's: the connection is lost.
func (s *stepper) step(ctx context.Context) error {
	defer s.endStepContext()
	s.begun = true
	deadline := time.Now().Add(s.engine.To.Options.BatchTime)
	queue := s.in.Messages
	var again []*message.Message
	total := 0
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if !s.ready(m) {
			continue
		}
		now := time.Now()
		if s.in.Late || now.After(deadline) {
			s.in.Stop()
			return nil // undecided messages are left; failed ones are already written down as retries
		}
		fresh := m.Instance != nil && !m.Instance.Stepped
		if err := s.handle(ctx, m, now); err != nil {
			return err
		}
		if total += written(m, fresh); total > mostWritten {
			s.in.Stop() // Postgres takes no parameter of a gigabyte, and the next batch comes at once
		}
		if m.Again() && !s.slow {
			again = append(again, m)
		}
		if len(queue) == 0 {
			queue, again = again, nil
		}
	}
	return nil
}

// mostWritten is about how many bytes the steps of a batch may send and change before it is written.
const mostWritten = 16 << 20

// written returns how many bytes m adds to the write of its batch: the messages it sends, and the state of its
// instance if m is the first message of that instance.
func written(m *message.Message, fresh bool) (bytes int) {
	for n := range m.Step.Out {
		bytes += len(m.Step.Out[n].Body)
	}
	if fresh && m.Instance.Session != nil {
		if in, err := m.Instance.Session.Instance(); err == nil {
			bytes += len(in.State)
		}
	}
	return bytes
}

// ready reports whether m is to be handled now, and decides the fate of messages that need no handler.
func (s *stepper) ready(m *message.Message) bool {
	if m.Consumer == nil || m.Fate != message.FateLeft && !m.Again() {
		return false
	}
	i := m.Instance
	if i == nil {
		return true
	}
	switch {
	case i.Left():
		return false
	case i.Fault != nil && i.Newer():
		s.in.AwaitNewerProgram(m, i.Fault)
		return false
	case i.Fault != nil:
		s.in.Fail(m, i.Fault)
		return false
	case i.Session == nil: // it does not exist
		if !m.Call.MayStart() {
			return true // Missing decides
		}
		return s.loader.begin(i, m)
	}
	// A key that was completed earlier in this batch can live again, but not in the same transaction.
	return !i.Session.Completed()
}

// handle runs one handler, which begins now. An error is the batch's.
func (s *stepper) handle(ctx context.Context, m *message.Message, begun time.Time) error {
	s.in.Enter(m, begun)
	defer s.in.Hand.Leave()
	retried := m.Again()
	if retried {
		s.in.RetryNow(m)
	}
	within := s.stepContext(ctx, begun)
	var out saga.Outcome
	switch i := m.Instance; {
	case m.Consumer.Tx != nil:
		decided, err := s.handleTx(within, m)
		if err == nil && decided == nil && retried {
			m.PutBack(0, m.Err) // the attempts that it made in this batch are counted
		}
		if err != nil || decided == nil {
			return err
		}
		out = *decided
	case m.Consumer.Raw != nil:
		decided := s.handleRaw(within, m)
		if decided == nil {
			if retried {
				m.PutBack(0, m.Err)
			}
			return nil
		}
		out = *decided
	case i.Session == nil || !i.Session.Live() &&
		!m.Call.MayStart(): // also when the start of this batch failed
		s.in.Missing(within, m)
		return nil
	default:
		out = s.in.Step(within, m)
		if out.Missing {
			s.in.SettleMissing(within, m, "instance has completed")
			return nil
		}
	}
	if out.Err != nil && ctx.Err() != nil { // the drain has cancelled it: this shows nothing about the message
		return fmt.Errorf("handle %s: %w", m.Kind, context.Cause(ctx))
	}
	m.Returned(time.Since(begun))
	if out.Err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		// The server may have ended our transaction. Then nothing of this batch is written, and the failure is
		// counted when the message is taken again.
		s.engine.To.Memory.FailNext(m.ID, out.Err)
	}
	s.in.Decide(m, out)
	return nil
}

// stepContext returns a context that ends after StepTimeout, or up to a tenth earlier: steps of a batch share one
// context as long as that holds, since most of them end within microseconds.
func (s *stepper) stepContext(ctx context.Context, now time.Time) context.Context {
	if s.ctx == nil || now.Sub(s.since) > s.engine.To.Options.StepTimeout/10 {
		s.endStepContext()
		s.since = now
		s.ctx, s.end = context.WithDeadline(ctx, now.Add(s.engine.To.Options.StepTimeout))
	}
	return s.ctx
}

func (s *stepper) endStepContext() {
	if s.ctx != nil {
		s.end()
		s.ctx = nil
	}
}

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
