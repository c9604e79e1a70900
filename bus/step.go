package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/edda-go/edda/saga"
)

// stepper hands the messages of a batch to their handlers.
type stepper struct {
	in     *decoder
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
	deadline := time.Now().Add(s.in.ep.options.BatchTime)
	queue := s.in.messages
	var again []*message
	written := 0
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if !s.ready(m) {
			continue
		}
		now := time.Now()
		if s.in.late = s.in.late || now.After(deadline); s.in.late {
			return nil // what is not decided yet is left; what failed is already written down as a retry
		}
		fresh := m.instance != nil && !m.instance.stepped
		if err := s.handle(ctx, m, now); err != nil {
			return err
		}
		if written += m.written(fresh); written > mostWritten {
			s.in.late = true // Postgres takes no parameter of a gigabyte, and the next batch comes at once
		}
		if m.retryNow() && !s.slow {
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

// written is how many bytes m adds to the write of its batch: what it sends, and the state of its instance when it
// is the first of that.
func (m *message) written(fresh bool) (bytes int) {
	for n := range m.step.out {
		bytes += len(m.step.out[n].Body)
	}
	if fresh && m.instance.session != nil {
		if in, err := m.instance.session.Instance(); err == nil {
			bytes += len(in.State)
		}
	}
	return bytes
}

// ready reports whether m is to be handled now, and decides the fate of those that need no handler.
func (s *stepper) ready(m *message) bool {
	if m.consumer == nil || m.fate != fateLeft && !m.retryNow() {
		return false
	}
	i := m.instance
	if i == nil {
		return true
	}
	switch i.status {
	case busyHere, busyThere, unknown:
		return false
	case newer:
		s.in.awaitNewerProgram(m, newerWait, i.fault)
		return false
	case faulty:
		s.in.fail(m, i.fault)
		return false
	case absent:
		if !m.call.MayStart() {
			return true // missing decides
		}
		return s.loader.begin(i, m)
	}
	// A key that was completed earlier in this batch can live again, but not in the same transaction.
	return !i.session.Completed()
}

// handle runs one handler, which begins now. The error is the batch's.
func (s *stepper) handle(ctx context.Context, m *message, begun time.Time) error {
	s.in.inHand = m
	retried := m.retryNow()
	if retried {
		s.in.retried = append(s.in.retried, failedAttempt{of: m, info: m.delivery.Info, err: m.err})
		m.delivery.Info.Attempt = m.Attempt + 1
		m.leave()
	}
	step := s.stepContext(ctx, begun)
	var out saga.Outcome
	switch i := m.instance; {
	case m.consumer.tx != nil:
		decided, err := s.handleTx(step, m)
		if err == nil && decided == nil && retried {
			m.putBack(0, m.err) // the attempts that it made in this batch are not forgotten
		}
		if err != nil || decided == nil {
			return err
		}
		out = *decided
	case m.consumer.raw != nil:
		decided := s.handleRaw(step, m)
		if decided == nil {
			if retried {
				m.putBack(0, m.err)
			}
			return nil
		}
		out = *decided
	case i.status == absent || !i.session.Live() && !m.call.MayStart(): // also when the start of this batch failed
		s.missing(step, m)
		return nil
	default:
		out = s.stepSaga(step, m, i)
		i.stepped = true
	}
	if out.Err != nil && ctx.Err() != nil { // the drain has cancelled it: this says nothing about the message
		return fmt.Errorf("handle %s: %w", m.Kind, context.Cause(ctx))
	}
	m.step.took = time.Since(begun)
	if out.Err != nil && errors.Is(step.Err(), context.DeadlineExceeded) {
		// The server may have ended our transaction meanwhile. Then nothing of this batch is written, and the
		// failure is counted when the message is taken again.
		s.in.ep.memory.failNext(m.ID, out.Err)
	}
	s.in.decide(m, out)
	return nil
}

// inTime makes a failure of a handler that took longer than its context allowed, whatever it returned: its
// neighbours' transaction is about to be ended for being idle.
func inTime(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.Join(errOverran, err)
	}
	return err
}

var errOverran = errors.New("the handler took longer than StepTimeout")

// stepContext is a context with StepTimeout to go, less at most a tenth: the steps of a batch share one for as
// long as that holds, since most of them are over in microseconds.
func (s *stepper) stepContext(ctx context.Context, now time.Time) context.Context {
	if s.ctx == nil || now.Sub(s.since) > s.in.ep.options.StepTimeout/10 {
		s.endStepContext()
		s.since = now
		s.ctx, s.end = context.WithDeadline(ctx, now.Add(s.in.ep.options.StepTimeout))
	}
	return s.ctx
}

func (s *stepper) endStepContext() {
	if s.ctx != nil {
		s.end()
		s.ctx = nil
	}
}

func (s *stepper) stepSaga(ctx context.Context, m *message, i *instance) saga.Outcome {
	rt := s.in.runtimeOf(m)
	rt.Around = timed
	if len(s.in.ep.handlers.middleware) > 0 {
		rt.Around = func(ctx context.Context, handler func(context.Context) error) error {
			call := func(ctx context.Context, d *saga.Delivery) error {
				if !bytes.Equal(d.Body, rt.In.Body) {
					rt.In.Body = d.Body
				}
				return handler(ctx)
			}
			return inTime(ctx, s.in.ep.handlers.around(ctx, &m.delivery, call))
		}
	}
	return i.session.Step(ctx, rt, m.call)
}

func timed(ctx context.Context, handler func(context.Context) error) error {
	return inTime(ctx, handler(ctx))
}

const (
	absentWait  = time.Second
	absentTries = 3
)

// missing decides about a message that found no instance and may not start one. When it was looked for by key, an
// instance may be about to be committed: absence counts only after it was seen some times. An instance that was looked
// for by its id has existed, so it is gone for good.
func (s *stepper) missing(ctx context.Context, m *message) {
	if m.call.Instance().IsZero() && m.Conflict < absentTries {
		m.Conflict++
		m.putBack(absentWait, ErrMissing)
		return
	}
	if out, ok := m.call.StepMissing(ctx, s.in.runtimeOf(m)); ok {
		s.in.decide(m, out)
		return
	}
	name, key := m.instance.name()
	err := fmt.Errorf("saga %s, key %q: %w", name, key, ErrMissing)
	switch m.call.Missing() {
	case saga.MissingRetry:
		s.in.fail(m, err)
	case saga.MissingDeadLetter:
		m.die("no instance", err)
	default:
		m.drop("no instance")
	}
}

// retryNow reports whether a message is to be tried again in this batch.
func (m *message) retryNow() bool {
	return m.fate == fateAgain && m.delay == 0 && m.consumer != nil && !m.unread
}

// recovered turns a panic of user code into an error with its stack.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &saga.PanicError{Value: v, Stack: debug.Stack()}
	}
}

func isNewerState(err error) bool { return errors.Is(err, saga.ErrNewerState) }
