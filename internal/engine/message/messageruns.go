package message

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// CheckRuns locks the runs of the batch's messages until its end, and decides the fate of messages whose runs are not
// current. The runs of messages that move to a partition are checked there.
func (e *Effects) CheckRuns(ctx context.Context) error {
	if !e.In.Fired {
		return nil
	}
	pipeline := &pgx.Batch{}
	finish := QueueRunCheck(e.In.To.Runs, pipeline, e.In.Messages, nil)
	if pipeline.Len() == 0 {
		return nil
	}
	if err := e.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("check runs: %w", pgerr.Explain(err))
	}
	finish()
	return nil
}

// QueueRunCheck queues the check of messages that have a run. The caller must call finish after the pipeline was
// sent. lost reports whether a different process has taken the message since: then that process decides about the
// run. If lost is nil, no message was lost.
func QueueRunCheck(r *runs.Store, pipeline *pgx.Batch, messages []*Message, lost func(*Message) bool) (finish func()) {
	var fired []*Message
	var a runs.Attempts
	for _, m := range messages {
		if m.Firing.Emitted && m.Fate != FateMoved {
			fired = append(fired, m)
			a.Add(m.Delivery.Info.Fire)
		}
	}
	if len(fired) == 0 {
		return func() {}
	}
	answers := r.QueueCheck(pipeline, a, nil)
	return func() {
		seen := map[saga.ID]bool{}
		for n, m := range fired {
			if lost != nil && lost(m) {
				continue
			}
			run, answer := m.Delivery.Info.Fire.Run, (*answers)[n]
			switch {
			case answer != runs.Current:
			case seen[run]:
				answer = runs.Over // a second message of one attempt, which no scheduler sends: the first decides
			default:
				seen[run] = true
			}
			m.FinishRun(answer)
		}
	}
}

// FinishRun sets m's fate according to the state of its run, unless the run is current.
func (m *Message) FinishRun(answer int32) {
	m.Firing.Run = nil
	switch answer {
	case runs.Current:
		m.Firing.Run = m.Delivery.Info.Fire
	case runs.Missing:
		m.Die(runs.ErrMissing.Error(), runs.ErrMissing)
	default:
		m.Err = nil
		m.Drop(runs.IsOver)
	}
}

// QueueRunLocks locks the runs that the completions of this batch will end. It comes before the starts, which may
// wait for another batch: this batch must not wait for a batch that waits for it.
func (e *Effects) QueueRunLocks(pipeline *pgx.Batch) {
	var a runs.Attempts
	for _, i := range e.Ending {
		if f := i.firing(); i.Version > 0 && f != nil {
			a.Add(f)
		}
	}
	if a.Len() > 0 {
		e.In.To.Runs.QueueCheck(pipeline, a, nil)
	}
}

// firing returns the firing that started the instance, or nil if no manifest did.
func (i *Instance) firing() *saga.Fire {
	if i == nil || i.Session == nil {
		return nil
	}
	in, err := i.Session.Instance()
	if err != nil || in.Originator.Run.IsZero() {
		return nil
	}
	return &saga.Fire{Run: in.Originator.Run, Attempt: in.Originator.RunAttempt}
}

// queueRunEnds queues the reports of runs that end in this transaction, and a heartbeat for runs that continue
// elsewhere: the next heartbeat is due from there. It waits for their manifests, so no statement that waits comes
// after it.
func (e *Effects) queueRunEnds(pipeline *pgx.Batch) {
	if !e.In.Fired && len(e.Ending) == 0 {
		return
	}
	ends := &runs.Ends{Held: []int32{}}
	var open runs.Attempts
	for _, m := range e.In.Messages {
		switch {
		case m.Firing.Run == nil:
		case m.Fate == FateDone && m.Firing.open:
			open.Add(m.Firing.Run)
		default:
			if outcome, text := m.runEnd(); outcome != "" {
				ends.AddHeld(m.Firing.Run, outcome, text)
			}
		}
	}
	if open.Len() > 0 {
		e.In.To.Runs.QueueBeat(pipeline, open)
	}
	for _, i := range e.Ending {
		f := i.firing()
		switch {
		case f == nil || !i.Won && e.Save == nil: // a save that goes with the second trip cannot lose
		case i.Version == 0: // started by a message of this batch
			ends.AddHeld(f, runs.Succeeded, "")
		default:
			ends.Add(f, runs.Succeeded, "")
		}
	}
	e.In.To.Runs.QueueEnd(pipeline, ends)
}

// RunEnds calls end for each run that ends with the fate of m: the message's own, and the run of its instance, if m
// has completed it.
func (m *Message) RunEnds(end func(f *saga.Fire, outcome, text string)) {
	if m.Firing.Run != nil {
		if outcome, text := m.runEnd(); outcome != "" {
			end(m.Firing.Run, outcome, text)
		}
	}
	if m.Fate == FateDone && m.Instance != nil && m.Instance.Ended {
		if f := m.Instance.firing(); f != nil {
			end(f, runs.Succeeded, "")
		}
	}
}

// runEnd returns the outcome of m's run and its error. The outcome is "" if the run stays open: the message is
// written back or left, its handler has left the run, or it has started an instance, and the run ends when the
// instance does.
func (m *Message) runEnd() (outcome, text string) {
	switch m.Fate {
	case FateDone:
		f := m.Instance.firing()
		if m.Firing.open || f != nil && f.Run == m.Firing.Run.Run && f.Attempt == m.Firing.Run.Attempt {
			return "", ""
		}
		return runs.Succeeded, ""
	case FateDead:
		if m.Hopeless() {
			return runs.Dead, deadletter.ErrorText(m.Err)
		}
		return runs.Failed, deadletter.ErrorText(m.Err)
	case FateDropped:
		if m.Firing.cancelled {
			return runs.Cancelled, m.Reason
		}
		return runs.Discarded, m.Reason
	}
	return "", ""
}

// Hopeless reports, for a message that was given up, whether a further attempt would fail in the same way.
func (m *Message) Hopeless() bool { return m.Firing.hopeless }

// CallOff is Drop for a message that Operator.Cancel has ended.
func (m *Message) CallOff(reason string) {
	m.Drop(reason)
	m.Firing.cancelled = true
}
