package bus

import (
	"errors"
	"math"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// pauseWait is how long a message whose policy paused the endpoint is kept from workers that have not heard of it.
const pauseWait = time.Second

// dbTime reads the database's clock between two of its answers.
type dbTime struct {
	begun time.Time // this process's clock, just before the transaction began
	now   time.Time // the database's clock when it had begun
}

// clock is an upper bound of the database's clock: what counts from it is never early.
func (t *dbTime) clock() time.Time { return t.now.Add(time.Since(t.begun)) }

// tally decides what becomes of a message whose attempt ended, and counts the failures. The policy goes in; a fate
// comes out.
type tally struct {
	ep *Endpoint
	dbTime

	failures int             // failed attempts, except conflicts
	retried  []failedAttempt // each repeated in this transaction
	failure  error           // the last of them
	pausing  *message        // whose policy pauses the endpoint
	late     bool            // no more steps begin
}

// failureOf is what a policy is told about m.
func (t *tally) failureOf(m *message, err error) recoverability.Failure {
	failure := recoverability.Failure{
		Info: m.delivery.Info, Err: err, Endpoint: t.ep.name, First: m.FirstFailed, Conflicts: m.Conflict,
		Now: t.now, Handled: t.ep.breaker.handled.Load(),
	}
	if m.consumer != nil && m.consumer.def != nil {
		failure.Sagas = []string{m.consumer.def.Name()}
	}
	return failure
}

// lose decides about a message that has lost more saves than its budget. Whatever a policy for conflicts decides costs
// no attempt.
func (t *tally) lose(m *message) {
	if t.ep.options.ConflictPolicy != nil && m.FirstFailed.IsZero() {
		m.FirstFailed = t.now
	}
	verdict := recoverability.ResolveConflict(t.ep.options.ConflictPolicy, t.failureOf(m, ErrConflict))
	if verdict.Action == recoverability.ActionCountAsFailure {
		m.Conflict = 0
		t.fail(m, ErrConflict)
		return
	}
	t.carryOut(m, ErrConflict, verdict)
}

// pauseAfter has the endpoint paused by the write of this batch, which starts no more steps.
func (t *tally) pauseAfter(m *message, reason string, err error) {
	m.putBack(pauseWait, err)
	m.reason = reason
	t.pausing, t.late = m, true
}

// pauses reports whether this batch pauses its endpoint: not when the message that asked for it was lost to a conflict.
func (t *tally) pauses() bool { return t.pausing != nil && t.pausing.fate == fateAgain }

// decide turns an outcome into a fate.
func (t *tally) decide(m *message, out saga.Outcome) {
	switch {
	case out.Err != nil:
		t.fail(m, out.Err)
	case out.Discard != "":
		m.drop(out.Discard)
	default:
		m.fate, m.step.out, m.step.gone = fateDone, out.Out, out.Cancelled
	}
}

// fail asks the policy about a failed attempt.
func (t *tally) fail(m *message, err error) {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = t.clock()
	}
	m.delivery.Info.Attempt = m.Attempt + 1
	verdict := recoverability.Resolve(t.ep.options.Policy, t.failureOf(m, err))
	m.Attempt = min(m.Attempt+1, math.MaxInt32) // the column is an int4
	if !errors.Is(err, ErrConflict) {
		t.failures, t.failure = t.failures+1, err
	}
	t.carryOut(m, err, verdict)
}

// carryOut makes a verdict the fate of m.
func (t *tally) carryOut(m *message, err error, verdict recoverability.Verdict) {
	switch verdict.Action {
	case recoverability.ActionRetryNow:
		m.putBack(0, err)
	case recoverability.ActionRetryIn:
		m.putBack(verdict.Delay, err)
	case recoverability.ActionDiscard:
		m.err = err
		m.drop(verdict.Reason)
	case recoverability.ActionPause:
		t.pauseAfter(m, verdict.Reason, err)
	default:
		m.die(deathReason(err, verdict), errors.Join(err, verdict.Err))
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
