package delivery

import (
	"errors"
	"math"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// What users may look for in the error of a message.
var (
	ErrConflict    = errors.New("other transactions changed the saga instance first, too often")
	ErrUnknownKind = errors.New("no program that consumes this queue knows its kind")
	ErrProcessDied = errors.New("the process died while it handled the message")
)

// pauseWait is how long a message whose policy paused the endpoint is kept from workers that have not heard of it.
const pauseWait = time.Second

// DBTime reads the database's clock between two of its answers.
type DBTime struct {
	// this process's clock, just before the transaction began; zero if time stands still while a message is handled
	Begun time.Time
	Now   time.Time // the database's clock when it had begun
}

// Clock is an upper bound of the database's clock: what counts from it is never early.
func (t *DBTime) Clock() time.Time {
	if t.Begun.IsZero() {
		return t.Now
	}
	return t.Now.Add(time.Since(t.Begun))
}

// Tally decides what becomes of a message whose attempt ended, and counts the failures. The policy goes in; a fate
// comes out.
type Tally struct {
	To *Recipient
	DBTime

	Failures int             // failed attempts, except conflicts
	Retried  []FailedAttempt // each repeated in this transaction
	Failure  error           // the last of them
	Pausing  *Message        // whose policy pauses the endpoint
	Late     bool            // no more steps begin
}

// failureOf is what a policy is told about m.
func (t *Tally) failureOf(m *Message, err error) recoverability.Failure {
	failure := recoverability.Failure{
		Info: m.Delivery.Info, Err: err, Endpoint: t.To.Name, First: m.FirstFailed, Conflicts: m.Conflict,
		Now: t.Now, Handled: t.To.Handled.Load(),
	}
	if m.Consumer != nil && m.Consumer.Definition != nil {
		failure.Sagas = []string{m.Consumer.Definition.Name()}
	}
	return failure
}

// Lose decides about a message that has lost more saves than its budget. Whatever a policy for conflicts decides costs
// no attempt.
func (t *Tally) Lose(m *Message) {
	if t.To.Options.ConflictPolicy != nil && m.FirstFailed.IsZero() {
		m.FirstFailed = t.Now
	}
	verdict := recoverability.ResolveConflict(t.To.Options.ConflictPolicy, t.failureOf(m, ErrConflict))
	if verdict.Action == recoverability.ActionCountAsFailure {
		m.Conflict = 0
		t.Fail(m, ErrConflict)
		return
	}
	t.carryOut(m, ErrConflict, verdict)
}

// pauseAfter has the endpoint paused by the write of this batch, which starts no more steps.
func (t *Tally) pauseAfter(m *Message, reason string, err error) {
	m.PutBack(pauseWait, err)
	m.Reason = reason
	t.Pausing, t.Late = m, true
}

// Pauses reports whether this batch pauses its endpoint: not when the message that asked for it was lost to a conflict.
func (t *Tally) Pauses() bool { return t.Pausing != nil && t.Pausing.Fate == FateAgain }

// Decide turns an outcome into a fate.
func (t *Tally) Decide(m *Message, out saga.Outcome) {
	switch {
	case out.Err != nil:
		t.Fail(m, out.Err)
	case out.Discard != "":
		m.Err = nil
		m.Drop(out.Discard)
	default:
		m.Err = nil // of an attempt before it in this batch
		m.Fate, m.Step.Out, m.Step.Gone = FateDone, out.Out, out.Cancelled
		m.Firing.open = out.RunOpen
	}
}

// Fail asks the policy about a failed attempt.
func (t *Tally) Fail(m *Message, err error) {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = t.Clock()
	}
	m.Delivery.Info.Attempt = m.Attempt + 1
	verdict := recoverability.Resolve(t.To.Options.Policy, t.failureOf(m, err))
	m.Attempt = min(m.Attempt+1, math.MaxInt32) // the column is an int4
	if !errors.Is(err, ErrConflict) {
		t.Failures, t.Failure = t.Failures+1, err
	}
	t.carryOut(m, err, verdict)
}

// carryOut makes a verdict the fate of m.
func (t *Tally) carryOut(m *Message, err error, verdict recoverability.Verdict) {
	switch verdict.Action {
	case recoverability.ActionRetryNow:
		m.PutBack(0, err)
	case recoverability.ActionRetryIn:
		m.PutBack(verdict.Delay, err)
	case recoverability.ActionDiscard:
		m.Err = err
		m.Drop(verdict.Reason)
	case recoverability.ActionPause:
		t.pauseAfter(m, verdict.Reason, err)
	default:
		m.Die(deathReason(err, verdict), errors.Join(err, verdict.Err))
	}
}

func deathReason(err error, verdict recoverability.Verdict) string {
	var permanent *saga.PermanentError
	switch {
	case verdict.Err != nil:
		return "the policy failed"
	case errors.As(err, &permanent):
		return "permanent"
	case errors.Is(err, ErrConflict):
		return "conflicts"
	}
	return "given up by the policy"
}
