package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Call is one call of a handler that does not belong to a saga.
type Call struct {
	Runtime  *saga.Runtime // without the message
	Delivery *saga.Delivery
	Tx       pgx.Tx      // of a HandleTx
	Slot     *limit.Slot // of a Handle in an endpoint with a limit
	Handlers *Table
}

// Run calls f inside the endpoint's middleware. A panic becomes an error, and so does the end of the time that ctx
// allows.
func (c *Call) Run(ctx context.Context, s *Sends, f Next) (err error) {
	defer Recovered(&err)
	defer s.closed.Store(true)
	return saga.Examined(InTime(ctx, c.Handlers.Around(ctx, c.Delivery, f)))
}

// Sends holds the messages that a handler without a saga sends.
type Sends struct {
	Runtime  saga.Runtime
	out      []saga.Outgoing
	outBytes int // total size of the bodies
	faults   []error
	runOpen  bool
	panicked bool // Runtime.Outgoing has panicked; the first fault has the panic
	closed   atomic.Bool
}

// Begin prepares s for the sends of the handler of c.
func (s *Sends) Begin(c *Call) {
	s.Runtime = *c.Runtime
	s.Runtime.In = *c.Delivery
}

const (
	mostOut      = 10_000   // messages of one step
	mostOutBytes = 64 << 20 // total size of their bodies
)

// LeaveRun leaves the run of the message open if the handler succeeds. It panics when the handler has returned.
func (s *Sends) LeaveRun() {
	if s.closed.Load() {
		panic("bus: LeaveRun was called after the handler returned")
	}
	s.runOpen = true
}

// Emit encodes a message that the handler sends with ctx, and returns its id. It records a fault for Outcome. It
// panics if the handler has returned.
func (s *Sends) Emit(ctx context.Context, intent saga.Intent, m saga.Message, o []saga.SendOption) saga.ID {
	if s.closed.Load() {
		panic("bus: a message was sent after the handler returned; finish before returning")
	}
	s.Runtime.Caller = ctx
	out, err := s.Runtime.Compose(intent, m, o...)
	if err == nil && len(s.out) >= mostOut {
		err = fmt.Errorf("%s: more than %d messages in one step: %w", out.Info.Kind, mostOut, saga.ErrTooLarge)
	}
	if s.outBytes += len(out.Body); err == nil && s.outBytes > mostOutBytes {
		err = fmt.Errorf("%s: more than %d bytes of messages in one step: %w", out.Info.Kind, mostOutBytes,
			saga.ErrTooLarge)
	}
	if err != nil {
		var panicked *saga.PanicError
		if !s.panicked && errors.As(err, &panicked) {
			s.panicked, s.faults = true, slices.Insert(s.faults, 0, fmt.Errorf("Outgoing: %w", error(panicked)))
			return saga.ID{}
		}
		if len(s.faults) < 5 {
			s.faults = append(s.faults, err)
		}
		return saga.ID{}
	}
	s.out = append(s.out, out)
	return out.Info.ID
}

// Outcome returns the outcome of the step after the handler returned err.
func (s *Sends) Outcome(err error) saga.Outcome {
	if err == nil && len(s.faults) == 0 { // first, because errors.As below makes garbage
		return saga.Outcome{Out: s.out, RunOpen: s.runOpen}
	}
	var panicked *saga.PanicError
	var discard *saga.DiscardError
	switch {
	case errors.As(err, &panicked):
		return saga.Outcome{Err: err}
	case s.panicked:
		return saga.Outcome{Err: s.faults[0]}
	case len(s.faults) > 0:
		fault := errors.Join(s.faults...)
		if !saga.Succeeded(err) {
			fault = fmt.Errorf("%w (the handler returned: %v)", fault, err)
		}
		return saga.Outcome{Err: &saga.PermanentError{Err: fault}}
	case saga.Succeeded(err):
		return saga.Outcome{Out: s.out, RunOpen: s.runOpen}
	case errors.As(err, &discard):
		return saga.Outcome{Discard: discard.Reason}
	}
	return saga.Outcome{Err: err}
}

// InTime returns an error for a handler that took longer than its context allowed, whatever it returned: the server
// is about to end the shared transaction for being idle.
func InTime(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.Join(ErrOverran, err)
	}
	return err
}

// ErrOverran is the failure of a handler that took longer than its context allowed.
var ErrOverran = errors.New("the handler took longer than StepTimeout")

// Recovered turns a panic of user code into an error with its stack.
func Recovered(err *error) {
	if v := recover(); v != nil {
		*err = &saga.PanicError{Value: v, Stack: debug.Stack()}
	}
}

// ErrLeft is the failure of a handler that did not return.
var ErrLeft = fmt.Errorf("the handler did not return within StepTimeout and %v: %w", run.Patience, run.ErrLeft)

// ErrExited is the failure of a handler that ended its goroutine.
var ErrExited = errors.New("the handler ended its goroutine (runtime.Goexit, or FailNow of package testing)")
