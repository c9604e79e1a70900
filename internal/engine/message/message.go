package message

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// fate says what happens to a taken message when its batch commits.
type fate uint8

const (
	FateLeft    fate = iota // stays in the queue as it is
	FateDone                // consumed with its effects
	FateAgain               // written back, to be due later
	FateDead                // moved to the dead letters
	FateDropped             // consumed without effect, with a reason
	FateMoved               // moved to a different queue, as it was
)

// Message is one taken row on its way through a batch.
type Message struct {
	queue.Row
	TID pg.TID // place of the row, while it is locked

	taken struct { // the values in the row, in case the batch's decision is dropped
		Attempt     int
		FirstFailed time.Time
	}

	Delivery saga.Delivery
	Consumer *handlers.Consumer
	Call     *saga.Call
	Instance *contention.Instance // nil for a plain handler, and if no instance exists

	Fate   fate
	Delay  time.Duration // with FateAgain
	Err    error         // the last failure
	Reason string        // with FateDead and FateDropped
	Step   stepped

	unread     bool // it could not be decoded, or not in time: it is not tried again in this batch
	Conflicted bool // its instance lost the save
	InLane     bool // its lane waits for its retry
	Judged     bool // it is not run: it fails because of a batch that rolled back
	Charged    bool // this batch was lost while its handler ran, which is counted already
	Partition  int  // with FateMoved

	Crash  crash
	Firing firing
}

// stepped is the result of the step of a message. Its messages are sent only if the fate is FateDone.
type stepped struct {
	Out  []saga.Outgoing
	Gone []saga.Cancelled
	Took time.Duration
}

// crash records processes that died with a message in hand.
type crash struct {
	Touched   bool  // a process had its row in hand before
	Suspected bool  // processes died with it
	guilty    error // too many of them: it is not run
}

// firing connects a message with the run of a manifest, see runs.go.
type firing struct {
	Emitted   bool         // a manifest emitted it
	Run       *saga.Firing // its run, which this transaction holds
	cancelled bool         // with FateDropped: by Operator.Cancel
	Open      bool         // with FateDone: the run stays open
	Hopeless  bool         // with FateDead: a further attempt would fail in the same way
}

// Join makes i the instance of m.
func (m *Message) Join(i *contention.Instance) { m.Instance = i }

// Move moves m as it is to the queue of a partition.
func (m *Message) Move(partition int) { m.Fate, m.Partition = FateMoved, partition }

// Returned notes that the handler of m has returned, and how long it ran.
func (m *Message) Returned(took time.Duration) { m.Step.Took = took }

// WaitInLane keeps the place of m in its lane until its retry.
func (m *Message) WaitInLane() { m.InLane = true }

// Suspect notes that processes died with m in hand. With guilty, m fails with that error and does not run.
func (m *Message) Suspect(guilty error) { m.Crash.Suspected, m.Crash.guilty = true, guilty }

// Charge notes that the loss of the transaction was held against m already, because its handler was running.
func (m *Message) Charge() { m.Charged = true }

// Unsend removes messages from the result of the step.
func (m *Message) Unsend(which func(saga.Outgoing) bool) {
	m.Step.Out = slices.DeleteFunc(m.Step.Out, which)
}

// undo removes the results of the step of m.
func (m *Message) undo() { m.Step.Out, m.Step.Gone = nil, nil }

// Leave leaves m in the queue, without effects.
func (m *Message) Leave() {
	m.Fate = FateLeft
	m.undo()
}

// PutBack writes m back, due after d.
func (m *Message) PutBack(d time.Duration, err error) {
	m.Fate, m.Delay, m.Err = FateAgain, d, err
	m.undo()
}

// Drop consumes m without effect. The record of discarded messages has the reason.
func (m *Message) Drop(reason string) {
	m.Fate, m.Reason = FateDropped, reason
	m.undo()
}

// Die makes m a dead letter. The error is not a user's.
func (m *Message) Die(reason string, err error) { m.die(reason, err, isHopeless(err)) }

func (m *Message) die(reason string, err error, hopeless bool) {
	m.Fate, m.Reason, m.Err, m.Firing.Hopeless = FateDead, reason, err, hopeless
	m.undo()
}

// Again reports whether m is to be tried again in this batch.
func (m *Message) Again() bool {
	return m.Fate == FateAgain && m.Delay == 0 && m.Consumer != nil && !m.unread
}

// FailedAttempt is an attempt without a trace in its message, because a retry followed in the same batch.
type FailedAttempt struct {
	Of   *Message
	Info saga.Info
	Err  error
	Took time.Duration // duration of the handler
}

const mostKey = 512 // bytes

// keyOf calls the user's function, which may panic.
func (m *Message) keyOf(codec saga.Codec) (key string, err error) {
	defer handlers.Recovered(&err)
	key, err = m.Consumer.Key(m.Delivery.Body, codec)
	switch {
	case err != nil:
	case key == "" || len(key) > mostKey:
		err = fmt.Errorf("the key has %d bytes, want 1 to %d", len(key), mostKey)
	case strings.ToValidUTF8(key, "") != key || strings.ContainsRune(key, 0):
		err = fmt.Errorf("the key is not UTF-8 text without NUL")
	}
	return key, err
}

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
