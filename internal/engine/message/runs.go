package message

import (
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
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

// RunEnd returns the outcome of m's run and its error. The outcome is "" if the run stays open: the message is
// written back or left, its handler has left the run, or it has started an instance, and the run ends when the
// instance does.
func (m *Message) RunEnd() (outcome, text string) {
	switch m.Fate {
	case FateDone:
		f := m.Instance.Firing()
		if m.Firing.Open || f != nil && f.Run == m.Firing.Run.Run && f.Attempt == m.Firing.Run.Attempt {
			return "", ""
		}
		return runs.Succeeded, ""
	case FateDead:
		if m.Firing.Hopeless {
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

// CallOff is Drop for a message that Operator.Cancel has ended. err is the error of its handler, or nil.
func (m *Message) CallOff(reason string, err error) {
	m.Err = err
	m.Drop(reason)
	m.Firing.cancelled = true
}
