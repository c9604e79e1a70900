package batch

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// blame decides which message, if any, is to blame when a batch fails with an error that no handler has returned.
type blame struct {
	engine *Engine
	in     *message.Decoder
	shared *sharedTx

	trouble  bool // a smaller batch may succeed
	poisoned bool // such an error has failed one of its messages
}

// assign changes the next batches after this one was lost: they are smaller, until a message that always loses its
// batch is alone in it. A connection that was lost before a message was taken changes nothing.
func (b *blame) assign(err error) {
	class := pgerr.ClassOf(err)
	// a different process subscribed, or a queue was dropped: this process's routes are out of date
	if class == pgerr.GuardFailed || class == pgerr.Unprepared {
		b.engine.To.Routes.Forget()
	}
	if class == pgerr.GuardFailed || class == pgerr.Lost && len(b.in.Messages) == 0 {
		return
	}
	b.trouble = true
	if len(b.in.Messages) == 1 {
		b.assignOne(b.in.Messages[0], class, err)
	}
}

// assignOne holds an error against a message that was alone in its batch. If the server refused what the batch wrote,
// that message is guilty. An error that a database in trouble also gives is counted, and becomes a failure of the
// message after several in a row.
func (b *blame) assignOne(m *message.Message, class pgerr.Class, err error) {
	switch {
	case m.Judged:
		b.engine.To.Memory.Clear(m.ID)
	case m.Charged:
	case contention.Guilty(class, err), b.shared.savepoint > 0 && tampered(class):
		b.engine.To.Memory.FailNext(m.ID, err)
	case contention.Doubtful(class, err):
		b.charge(m, err)
	}
}

// lostIn holds the end of the transaction against m, whose step was running. A handler that took longer than its
// context allowed has failed, whether its query ended with that context or the server ended the idle transaction.
func (b *blame) lostIn(step context.Context, m *message.Message, err error) error {
	m.Charge()
	if errors.Is(step.Err(), context.DeadlineExceeded) {
		b.engine.To.Memory.FailNext(m.ID, err)
	} else {
		b.charge(m, err)
	}
	return fmt.Errorf("handle %s: the transaction was lost: %w", m.Kind, err)
}

// judge returns the outcome of a failed step, or nil if the message is to be taken again: a lock that was not free, a
// deadlock, a serialization failure or a full disk is not the message's fault, unless it happens too often in a row.
func (b *blame) judge(m *message.Message, tx *stepTx, out saga.Outcome) *saga.Outcome {
	switch pgerr.ClassOf(tx.failed) {
	case pgerr.Busy:
		if len(b.in.Messages) == 1 {
			return &out // the message was alone, under the lock_timeout of its own session
		}
	case pgerr.Race, pgerr.Exhausted:
	default:
		return &out
	}
	b.trouble = true
	if b.charge(m, out.Err) {
		return &out
	}
	return nil
}

// charge counts an error against m, and reports whether m has used up the number that is free.
func (b *blame) charge(m *message.Message, err error) (spent bool) {
	spent = b.engine.To.Memory.Charge(m.ID, err)
	b.poisoned = b.poisoned || spent
	return spent
}
