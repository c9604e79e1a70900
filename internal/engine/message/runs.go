package message

import (
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/saga"
)

// FinishRun sets m's fate according to the state of its run, unless the run is current.
func (m *Message) FinishRun(answer int32) {
	m.Firing.Run = nil
	switch answer {
	case runs.Current:
		m.Firing.Run = m.Delivery.Info.Firing
	case runs.Missing:
		m.Die(runs.ErrMissing.Error(), runs.ErrMissing)
	default:
		m.Err = nil
		m.Drop(runs.IsOver)
	}
}

// RunEnds calls end for each run that ends with the fate of m: the message's own, and the run of its instance, if m
// has completed it.
func (m *Message) RunEnds(end func(f *saga.Firing, outcome, text string)) {
	if m.Firing.Run != nil {
		if outcome, text := m.RunEnd(); outcome != "" {
			end(m.Firing.Run, outcome, text)
		}
	}
	if m.Fate == FateDone && m.Instance != nil && m.Instance.Ended {
		if f := m.Instance.Firing(); f != nil {
			end(f, runs.Succeeded, "")
		}
	}
}

// RunEnd returns the outcome of m's run and its error. The outcome is "" if the run stays open: the message is
// written back or left, its handler has left the run, or it has started an instance, and the run ends when the
// instance does.
func (m *Message) RunEnd() (outcome, text string) {
	switch m.Fate {
	case FateDone:
		f := m.Instance.Firing()
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

// LeavesRun reports whether m is handled, and its handler has left the run open.
func (m *Message) LeavesRun() bool { return m.Fate == FateDone && m.Firing.open }

// Hopeless reports, for a message that was given up, whether a further attempt would fail in the same way.
func (m *Message) Hopeless() bool { return m.Firing.hopeless }

// CallOff is Drop for a message that Operator.Cancel has ended.
func (m *Message) CallOff(reason string) {
	m.Drop(reason)
	m.Firing.cancelled = true
}
