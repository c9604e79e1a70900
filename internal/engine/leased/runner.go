package leased

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// runner runs the handlers of claimed messages, at most the configured number at a time.
type runner struct {
	*Terms
	claims    *claims
	work      context.Context // context of the handlers
	taking    context.Context // context of the claims; set before the first
	handlers  *run.Group
	heartbeat run.Nudge     // of the extender
	closed    chan struct{} // closed when no handler runs any more or can start
	settings  *settings.Follower
	workers   func(settings.Settings) int
}

// begin begins a Run, whose handlers run until work ends.
func (r *runner) begin(work context.Context) { r.work, r.handlers = work, run.NewGroup(work) }

// dispatch starts the handlers of messages, and passes messages that need no handler to the finisher. After the end
// of taking, messages return to the queue.
func (r *runner) dispatch(all []*claimed) {
	start := make([]*claimed, 0, len(all))
	for _, m := range all {
		switch {
		case m.msg.Fate != message.FateLeft || m.msg.Consumer == nil:
			r.claims.end(m)
		case r.taking.Err() != nil:
			r.claims.release(m)
		default:
			start = append(start, m)
		}
	}
	r.start(start)
}

// start passes messages to handlers, as many as may run, and keeps the others for handlers that become free. It
// removes the message of a new handler from the waiting ones before it counts the handler as running: wanted must not
// count such a message twice.
func (r *runner) start(all []*claimed) {
	c := r.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, all...)
	for range min(c.atOnce()-c.running, len(c.waiting)) {
		c.running++
		first := r.takeWaiting()
		r.handlers.Go(func(work context.Context) error { r.handleAll(work, first); return nil })
	}
}

// handleAll handles m, and then further messages until no message waits. If a handler ends its goroutine or does not
// return, its message has failed, and a new goroutine continues.
func (r *runner) handleAll(work context.Context, m *claimed) {
	for m != nil {
		at := m // of the goroutine
		ended := r.To.Options.Calls.Do(func(hand *run.Hand) {
			for ; at != nil; at = r.next() {
				r.handle(work, hand, at)
			}
		})
		switch m = at; {
		case ended == nil:
			return
		case errors.Is(ended, run.ErrLeft):
			r.judge(m, saga.Outcome{Err: handlers.ErrLeft})
		default:
			r.judge(m, saga.Outcome{Err: handlers.ErrExited})
		}
		m.stop(nil)
		m = r.next()
	}
}

// takeWaiting returns the first message that waits for a handler. The caller holds mu.
func (r *runner) takeWaiting() *claimed {
	c := r.claims
	m := c.waiting[0]
	c.waiting = c.waiting[1:]
	return m
}

// next returns the message for a handler that is free, or nil.
func (r *runner) next() *claimed {
	c := r.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 || c.running > max(c.atOnce(), 1) {
		c.running--
		c.room.Send()
		return nil
	}
	return r.takeWaiting()
}

// stop releases the messages that have not begun, and waits for the handlers that run.
func (r *runner) stop() {
	r.claims.stop()
	_ = r.handlers.Wait() // they return no errors
	close(r.closed)
}

// handle runs the handler of one message, and decides the fate of the message.
func (r *runner) handle(ctx context.Context, hand *run.Hand, m *claimed) {
	m.life, m.stop = context.WithCancelCause(ctx)
	if r.claims.begin(m, m.stop) {
		limited, end := context.WithTimeout(m.life, r.Options.StepTimeout)
		defer end()
		r.handleIn(limited, hand, m) //nolint:contextcheck // judge reads life, the parent of limited
	} else {
		r.claims.lose(m) // otherwise the next extension would find the row as it was, and keep it forever
	}
	m.stop(nil)
}

func (r *runner) handleIn(limited context.Context, hand *run.Hand, m *claimed) {
	if m.msg.Firing.Emitted && !r.beginRun(limited, m) {
		return
	}
	m.begun = time.Now()
	hand.Enter(m.msg.Kind, m.msg.ID, m.begun)
	out := m.call(limited)
	hand.Return()
	m.msg.Returned(time.Since(m.begun))
	r.judge(m, out)
}

// call runs the handler. Handlers of other messages of the claim run at the same time.
func (m *claimed) call(ctx context.Context) saga.Outcome {
	of := handlers.Call{Runtime: &m.decoder.Runtime, Delivery: &m.msg.Delivery, Slot: m.slot,
		Handlers: m.decoder.To.Handlers}
	out, _ := m.decoder.Call(ctx, m.msg.Consumer.Leased, of) // the error is in the outcome
	return out
}

// judge turns an outcome into a fate. A cancel from outside takes precedence over the handler's own result.
func (r *runner) judge(m *claimed, out saga.Outcome) {
	cause := context.Cause(m.life)
	switch {
	case errors.Is(cause, ErrClaimLost):
		r.claims.lose(m)
		return
	case out.Err != nil && errors.Is(cause, ErrCancelled):
		m.msg.CallOff(cause.Error(), r.To.Options.Judges.Examined(r.To.Options.Decoding, out.Err))
	case out.Err != nil && cause != nil: // the drain has cancelled it, so the message is not at fault
		m.release = true
	default:
		own := message.Tally{To: r.To, DBTime: m.decoder.DBTime} // others of the claim are judged at the same time
		own.Decide(&m.msg, out)
		m.failed = own.Failed
	}
	r.claims.end(m)
}

// A run without heartbeats is sent again. So a leased handler whose message has a run sends heartbeats for it. The
// run is checked when the handler begins, with every extension of the lease, and in the transaction that ends the
// message. If the run has ended, the handler is cancelled, and its sends are not written.

// beginRun notes that the handler of m begins, and reports whether it may: not if the run has ended, or cannot be
// checked. It uses the bus's pool. As many handlers as Concurrency allows may check at once, and another transaction
// may have their runs locked: the connections that claim, finish and extend are not for them.
func (r *runner) beginRun(ctx context.Context, m *claimed) bool {
	var a runs.Attempts
	a.Add(m.msg.Delivery.Info.Firing)
	process := fmt.Sprintf("%s/%d", r.Session.Host, os.Getpid())
	pipeline := &pgx.Batch{}
	queue.OpenLeased(pipeline, r.bound, nil)
	answers := r.To.Runs.QueueCheck(pipeline, a, &process)
	err := r.To.Pool.SendBatch(ctx, pipeline).Close()
	switch {
	case err == nil && (*answers)[0] == runs.Current:
		r.claims.locked(func() { m.beats = true })
		if r.Options.Lease > beatsPerLease*longestSilence {
			r.heartbeat.Send() // the next one is due earlier than it was
		}
		return true
	case err == nil:
		m.msg.FinishRun((*answers)[0])
		r.claims.end(m)
	case context.Cause(ctx) != nil:
		r.judge(m, saga.Outcome{Err: err})
	default: // the database is away, or another transaction has the run locked: the message is not at fault
		r.To.Calm.Warn("edda: a batch was rolled back", "endpoint", r.To.Name,
			"error", fmt.Errorf("check a run: %w", pgerr.Explain(err)))
		m.msg.PutBack(checkAgain, err)
		r.claims.end(m)
	}
	return false
}

// checkAgain is how long a message waits if its run could not be checked.
const checkAgain = time.Second

// followSettings keeps the number of handlers at the configured one, and reports a pause when no claim is in flight
// any more.
func (r *runner) followSettings(ctx context.Context, claiming *claimer) error {
	for {
		changed, now := r.settings.Changed(), r.settings.Now()
		r.claims.locked(func() { r.claims.most = r.workers(now) })
		r.start(nil) // there may be room for waiting messages
		r.claims.room.Send()
		r.Alarm.Wake()
		if now.Paused {
			claiming.awaitClaim()
		}
		r.settings.Report(now)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
