package outbox

import (
	"errors"
	"slices"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// fate is the end of a message of a relay.
type fate uint8

const (
	fateLeft      fate = iota // it stays in the queue
	fateRelayed               // the other side has it
	fateDead                  // it is a dead letter
	fateDiscarded             // it was not wanted
)

// message is one message of a relay's queue on its way to the other side.
type message struct {
	queue.Row
	tid      pg.TID
	delivery saga.Delivery

	fired bool         // its header names a run
	run   *saga.Firing // its run, once it is known to be current

	fate   fate
	err    error
	reason string
}

func (m *message) die(reason string, err error) { m.fate, m.reason, m.err = fateDead, reason, err }

func (m *message) discard(reason string) { m.fate, m.reason = fateDiscarded, reason }

// settled returns the fate of m for events.
func (m *message) settled() event.Fate {
	switch m.fate {
	case fateRelayed:
		return event.FateRelayed
	case fateDead:
		return event.FateDead
	case fateDiscarded:
		return event.FateDiscarded
	}
	if m.err != nil {
		return event.FateRetried
	}
	return event.FateLeft
}

// hopeless reports whether a further attempt of the run of m would also fail.
func (m *message) hopeless() bool {
	var permanent *saga.PermanentError
	return errors.As(m.err, &permanent)
}

// since returns when m began to wait.
func (m *message) since() time.Time {
	if m.Sent.After(m.Due) {
		return m.Sent
	}
	return m.Due
}

// batch has the messages of one pass, in their order.
type batch struct {
	messages []*message
	now      time.Time // of the database, when they were read
	read     time.Time // of this process, before that
	xmax     uint64    // the next transaction id, when they were read
	fired    bool      // one of them belongs to a run
	unread   int       // messages that a newer program wrote
	beyond   int       // the last messages, read behind the pass, perhaps after a gap; see stuck.go

	wait time.Duration // before the next pass
	took time.Duration // of forward
}

// clock returns the database's time, or slightly earlier.
func (b *batch) clock() time.Time { return b.now.Add(time.Since(b.read)) }

// undecided returns the messages that are to be forwarded.
func (b *batch) undecided() []*message {
	return slices.DeleteFunc(slices.Clone(b.messages), func(m *message) bool { return m.fate != fateLeft })
}

// gone returns the position of the last message before the first that is left; zero if the first message is left.
func (b *batch) gone() (last queue.Position) {
	for _, m := range b.messages[:len(b.messages)-b.beyond] {
		if m.fate == fateLeft {
			break
		}
		last = m.Position()
	}
	return last
}
