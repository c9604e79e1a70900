package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pauseWait is how long a message whose policy paused the endpoint is kept from workers that have not heard of it.
const pauseWait = time.Second

// failureOf is what a policy is told about m.
func (b *batch) failureOf(m *message, err error) recoverability.Failure {
	failure := recoverability.Failure{
		Info: m.delivery.Info, Err: err, Endpoint: b.name, First: m.FirstFailed, Conflicts: m.Conflict,
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
	if b.options.ConflictPolicy != nil && m.FirstFailed.IsZero() {
		m.FirstFailed = b.now
	}
	verdict := recoverability.ResolveConflict(b.options.ConflictPolicy, b.failureOf(m, ErrConflict))
	if verdict.Action == recoverability.ActionCountAsFailure {
		m.Conflict = 0
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

// queuePause queues the pause. It stands in the transaction that puts the message back.
func (b *batch) queuePause(pipeline *pgx.Batch) {
	pipeline.Queue(b.bus.knobs.Get("pause_in_batch"), b.name, deadletter.Storable(b.pausing.reason)).Exec(
		func(tag pgconn.CommandTag) error {
			b.paused = tag.RowsAffected() == 1
			return nil
		})
}

// haltAfterPause lets this process begin no other batch, without waiting for what it will read, and tells the others.
func (b *batch) haltAfterPause(ctx context.Context) {
	if b.paused {
		if b.pump != nil {
			b.pump.halt(true)
		}
		b.knobs.pause(b.pausing.reason, b.clock())
	}
	b.bus.turned(ctx, b.queue.ID)
}
