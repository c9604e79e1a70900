package message

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/internal/base/wire"
)

const (
	unknownWait = 5 * time.Second
	newerLeast  = time.Second
	newerWait   = time.Minute
)

const newerProgram = "newer program" // the reason of such a dead letter

// unknownRemedy says how to handle messages of a kind that an endpoint does not support.
const unknownRemedy = "run a program whose endpoint handles this kind; a message that has waited until then becomes " +
	"a dead letter"

// unknownPause is a quarter of the time that a message has waited: each try writes its row anew, and a message whose
// kind has been unknown for minutes may wait one more.
func (t *Tally) unknownPause(m *Message) time.Duration {
	if m.FirstFailed.IsZero() {
		return unknownWait
	}
	return max(unknownWait, min(t.Now.Sub(m.FirstFailed)/4, newerWait))
}

// unknownKind makes m wait: in a rolling deploy the new kind arrives before the new program runs everywhere. Waiting
// costs no attempt, and only after a long time the message becomes a dead letter. A handler that was forgotten looks
// the same, so the first message of each kind is logged.
func (t *Tally) unknownKind(m *Message) {
	err := fmt.Errorf("%s: %w; this endpoint consumes %v", wire.Shown(m.Kind), ErrUnknownKind, t.To.Handlers.Kinds())
	if t.waitedLong(m) {
		m.Die("unknown kind", err)
		return
	}
	m.PutBack(min(t.unknownPause(m), t.To.Options.UnknownKindTimeout), err)
	if t.To.Memory.NewKind(m.Kind) {
		until := m.FirstFailed.Add(t.To.Options.UnknownKindTimeout).UTC()
		args := []any{"endpoint", t.To.Name, "message_id", m.ID.String(), "kind", wire.Shown(m.Kind), "until", until,
			"remedy", unknownRemedy, "error", err}
		t.To.Log.Warn("edda: messages wait for a program that handles their kind",
			wire.AppendTrace(args, &m.Delivery.Info)...)
	}
}

// waitedLong reports whether m has waited for a program that understands it for as long as it may.
func (t *Tally) waitedLong(m *Message) bool {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = t.Now
	}
	return t.Now.Sub(m.FirstFailed) >= t.To.Options.UnknownKindTimeout
}

// newerHeader leaves m to a program that can read its header, but no longer than an unknown kind may wait: any sender
// that may write to the queue can claim a newer header.
func (t *Tally) newerHeader(m *Message, err error) {
	if t.waitedLong(m) {
		m.Die(newerProgram, err)
		return
	}
	t.AwaitNewerProgram(m, err)
	m.Delay = min(m.Delay, t.To.Options.UnknownKindTimeout)
}

// newerPause returns how long m is left to a newer program: a quarter of the time since it was sent, between a second
// and a minute, less up to a quarter of that at random.
//
// While an old and a new program run beside each other, either may take a message each time that it is due. So a
// fresh message meets the new program within seconds. With constant waits of a minute, a message stayed for minutes
// if the old program took it first again and again, as often happened, because both programs wake for the same due
// time; the random part prevents that. Each take writes the row anew and costs no attempt, so their number matters:
// about twenty-five in the first four minutes of a message, and then one in 45 s to a minute. So a million messages
// that wait cannot keep the database busy, and a message that waited long for a different reason, such as a timeout,
// begins with long waits. The age needs no room in the row: first_failed is only for messages that may wait for a
// limited time, and these wait without end. If the age is not known, because a sender's clock was ahead, the wait is
// the longest.
func (t *Tally) newerPause(m *Message) time.Duration {
	pause := newerWait
	if age := t.Now.Sub(m.Sent); age >= 0 {
		pause = max(newerLeast, min(age/4, newerWait))
	}
	return pause - rand.N(pause/4)
}

// AwaitNewerProgram leaves m to a program that supports its version, and logs that from time to time.
func (t *Tally) AwaitNewerProgram(m *Message, err error) {
	m.PutBack(t.newerPause(m), err)
	if t.To.Memory.NewerSeen(newerWait) {
		args := []any{"endpoint", t.To.Name, "message_id", m.ID.String(), "kind", wire.Shown(m.Kind), "error", err}
		t.To.Log.Warn("edda: messages wait for a newer program", wire.AppendTrace(args, &m.Delivery.Info)...)
	}
}
