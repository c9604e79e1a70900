package bus

import (
	"time"

	"github.com/edda-go/edda/recoverability"
)

// pauseWait is how long a message whose policy paused the endpoint is kept from workers that have not heard of it.
const pauseWait = time.Second

// failureOf is what a policy is told about m.
func (b *batch) failureOf(m *message, err error) recoverability.Failure {
	failure := recoverability.Failure{
		Info: m.delivery.Info, Err: err, Endpoint: b.name, First: m.firstFailed, Conflicts: m.conflict,
		Now: b.now, Handled: b.brake.handled.Load(),
	}
	if m.consumer != nil && m.consumer.def != nil {
		failure.Sagas = []string{m.consumer.def.Name()}
	}
	return failure
}

// lose decides about a message that has lost more saves than its budget. Whatever a policy for conflicts decides costs
// no attempt.
func (b *batch) lose(m *message) {
	if b.options.ConflictPolicy != nil && m.firstFailed.IsZero() {
		m.firstFailed = b.now
	}
	verdict := recoverability.ResolveConflict(b.options.ConflictPolicy, b.failureOf(m, ErrConflict))
	if verdict.Action == recoverability.ActionCountAsFailure {
		m.conflict = 0
		b.fail(m, ErrConflict)
		return
	}
	b.carryOut(m, ErrConflict, verdict)
}

// pauseAfter has the endpoint paused by the write of this batch, which starts no more steps.
func (b *batch) pauseAfter(m *message, reason string, err error) {
	m.putBack(pauseWait, err)
	m.reason = reason
	b.pausing, b.late = m, true
}

// pauses tells whether this batch pauses its endpoint: not when the message that asked for it was lost to a conflict.
func (b *batch) pauses() bool { return b.pausing != nil && b.pausing.fate == again }
