package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/saga"
)

// ErrMissing is the error of a message that found no instance, where the saga says that this is a failure.
var ErrMissing = errors.New("the message found no saga instance")

// stepper hands the messages of a batch to their handlers.
type stepper struct {
	engine *Engine
	in     *delivery.Decoder
	loader *loader
	shared *sharedTx
	blame  *blame

	slow     bool            // one message at a time: none is tried twice in this batch
	ctx      context.Context // of the steps that run now, see stepContext
	end      context.CancelFunc
	since    time.Time
	lentBody []byte // a copy of the body in hand, for a raw handler
}

func (s *stepper) reset(slow bool) { s.slow = slow }

// step handles each message in order, in memory. A message that failed and is to be tried at once comes again
// at the end, if the batch's time allows. The error is the batch's: the connection is gone.
func (s *stepper) step(ctx context.Context) error {
	defer s.endStepContext()
	deadline := time.Now().Add(s.engine.To.Options.BatchTime)
	queue := s.in.Messages
	var again []*delivery.Message
	written := 0
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if !s.ready(m) {
			continue
		}
		now := time.Now()
		if s.in.Late = s.in.Late || now.After(deadline); s.in.Late {
			return nil // what is not decided yet is left; what failed is already written down as a retry
		}
		fresh := m.Instance != nil && !m.Instance.Stepped
		if err := s.handle(ctx, m, now); err != nil {
			return err
		}
		if written += m.Written(fresh); written > mostWritten {
			s.in.Late = true // Postgres takes no parameter of a gigabyte, and the next batch comes at once
		}
		if m.RetryNow() && !s.slow {
			again = append(again, m)
		}
		if len(queue) == 0 {
			queue, again = again, nil
		}
	}
	return nil
}

// mostWritten is how many bytes the steps of a batch send and change before it is written, about.
const mostWritten = 16 << 20

// ready reports whether m is to be handled now, and decides the fate of those that need no handler.
func (s *stepper) ready(m *delivery.Message) bool {
	if m.Consumer == nil || m.Fate != delivery.FateLeft && !m.RetryNow() {
		return false
	}
	i := m.Instance
	if i == nil {
		return true
	}
	switch i.Status {
	case delivery.BusyHere, delivery.BusyThere, delivery.Unknown:
		return false
	case delivery.Newer:
		s.in.AwaitNewerProgram(m, delivery.NewerWait, i.Fault)
		return false
	case delivery.Faulty:
		s.in.Fail(m, i.Fault)
		return false
	case delivery.Absent:
		if !m.Call.MayStart() {
			return true // missing decides
		}
		return s.loader.begin(i, m)
	}
	// A key that was completed earlier in this batch can live again, but not in the same transaction.
	return !i.Session.Completed()
}

// handle runs one handler, which begins now. The error is the batch's.
func (s *stepper) handle(ctx context.Context, m *delivery.Message, begun time.Time) error {
	s.in.InHand = m
	retried := m.RetryNow()
	if retried {
		s.in.Retried = append(s.in.Retried, delivery.FailedAttempt{Of: m, Info: m.Delivery.Info, Err: m.Err})
		m.Delivery.Info.Attempt = m.Attempt + 1
		m.Leave()
	}
	step := s.stepContext(ctx, begun)
	var out saga.Outcome
	switch i := m.Instance; {
	case m.Consumer.Tx != nil:
		decided, err := s.handleTx(step, m)
		if err == nil && decided == nil && retried {
			m.PutBack(0, m.Err) // the attempts that it made in this batch are not forgotten
		}
		if err != nil || decided == nil {
			return err
		}
		out = *decided
	case m.Consumer.Raw != nil:
		decided := s.handleRaw(step, m)
		if decided == nil {
			if retried {
				m.PutBack(0, m.Err)
			}
			return nil
		}
		out = *decided
	case i.Status == delivery.Absent || !i.Session.Live() &&
		!m.Call.MayStart(): // also when the start of this batch failed
		s.missing(step, m)
		return nil
	default:
		out = s.stepSaga(step, m, i)
		if i.Stepped = true; out.Missing {
			s.settleMissing(step, m, "instance has completed")
			return nil
		}
		i.Ended = i.Ended || out.Completed
	}
	if out.Err != nil && ctx.Err() != nil { // the drain has cancelled it: this says nothing about the message
		return fmt.Errorf("handle %s: %w", m.Kind, context.Cause(ctx))
	}
	m.Step.Took = time.Since(begun)
	if out.Err != nil && errors.Is(step.Err(), context.DeadlineExceeded) {
		// The server may have ended our transaction meanwhile. Then nothing of this batch is written, and the
		// failure is counted when the message is taken again.
		s.engine.To.Memory.FailNext(m.ID, out.Err)
	}
	s.in.Decide(m, out)
	return nil
}

// stepContext is a context with StepTimeout to go, less at most a tenth: the steps of a batch share one for as
// long as that holds, since most of them are over in microseconds.
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

func (s *stepper) stepSaga(ctx context.Context, m *delivery.Message, i *delivery.Instance) saga.Outcome {
	rt := s.in.RuntimeOf(m)
	rt.Around = timed
	if len(s.engine.To.Handlers.Middleware) > 0 {
		rt.Around = func(ctx context.Context, handler func(context.Context) error) error {
			call := func(ctx context.Context, d *saga.Delivery) error {
				if !bytes.Equal(d.Body, rt.In.Body) {
					rt.In.Body = d.Body
				}
				return handler(ctx)
			}
			return handlers.InTime(ctx, s.engine.To.Handlers.Around(ctx, &m.Delivery, call))
		}
	}
	return i.Session.Step(ctx, rt, m.Call)
}

func timed(ctx context.Context, handler func(context.Context) error) error {
	return handlers.InTime(ctx, handler(ctx))
}

const (
	absentWait  = time.Second
	absentTries = 3
)

// missing decides about a message that found no instance and may not start one. When it was looked for by key, an
// instance may be about to be committed: absence counts only after it was seen some times. An instance that was looked
// for by its id has existed, so it is gone for good.
func (s *stepper) missing(ctx context.Context, m *delivery.Message) {
	if m.Call.Instance().IsZero() && m.Conflict < absentTries {
		m.Conflict++
		m.PutBack(absentWait, ErrMissing)
		return
	}
	s.settleMissing(ctx, m, "no instance")
}

// settleMissing decides about a message for which there is no instance any more.
func (s *stepper) settleMissing(ctx context.Context, m *delivery.Message, reason string) {
	if out, ok := m.Call.StepMissing(ctx, s.in.RuntimeOf(m)); ok {
		s.in.Decide(m, out)
		return
	}
	name, key := m.Instance.Name()
	err := fmt.Errorf("saga %s, key %q: %s: %w", name, key, reason, ErrMissing)
	switch m.Call.Missing() {
	case saga.MissingRetry:
		s.in.Fail(m, err)
	case saga.MissingDeadLetter:
		m.Die(reason, err)
	default:
		m.Drop(reason)
	}
}

func isNewerState(err error) bool { return errors.Is(err, saga.ErrNewerState) }
