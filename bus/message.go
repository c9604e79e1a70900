package bus

import (
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// fate is what becomes of a taken message when its batch commits.
type fate uint8

const (
	fateLeft    fate = iota // stays in the queue as it is
	fateDone                // consumed with its effects
	fateAgain               // written back, to be due later
	fateDead                // moved to the dead letters
	fateDropped             // consumed without effect, with a reason
	fateMoved               // in another queue, as it was
)

// message is one taken row on its way through a batch.
type message struct {
	queue.Row
	tid pg.TID // where the row lies, while it is locked

	taken struct { // as the row has it, for when the batch's view turns out wrong
		attempt     int
		firstFailed time.Time
	}

	delivery saga.Delivery
	consumer *consumer
	call     *saga.Call
	instance *instance // nil for a plain handler, and when there is none

	fate   fate
	delay  time.Duration // with again
	err    error         // the last failure
	reason string        // with dead and dropped
	step   stepped

	unread     bool // it could not be decoded, or not in time: it is not tried again in this batch
	conflicted bool // its instance lost the save
	inLane     bool // its lane waits for its retry, see laneplan.go
	judged     bool // it is not run: it fails for what it did to a batch that rolled back
	charged    bool // this batch was lost while its handler ran, which is counted already
	partition  int  // with moved

	crash  crash
	firing firing
}

// stepped is what the step of a message did. It sends nothing unless the message is done.
type stepped struct {
	out  []saga.Outgoing
	gone []saga.Cancelled
	took time.Duration
}

// crash is what is known of processes that died with a message.
type crash struct {
	touched   bool  // somebody had its row in hand before
	suspected bool  // processes died with it
	guilty    error // and too many of them: it is not run
}

// firing is what a message has to do with the run of a manifest, see runs.go.
type firing struct {
	emitted   bool       // a manifest emitted it
	run       *saga.Fire // its run, which this transaction holds
	cancelled bool       // with dropped: by Operator.Cancel
}

// undo takes back what the step of m did.
func (m *message) undo() { m.step.out, m.step.gone = nil, nil }

// leave makes m stay in the queue, with nothing of it.
func (m *message) leave() {
	m.fate = fateLeft
	m.undo()
}

// putBack writes m back, due after d.
func (m *message) putBack(d time.Duration, err error) {
	m.fate, m.delay, m.err = fateAgain, d, err
	m.undo()
}

func (m *message) drop(reason string) {
	m.fate, m.reason = fateDropped, reason
	m.undo()
}

func (m *message) die(reason string, err error) {
	m.fate, m.reason, m.err = fateDead, reason, err
	m.undo()
}

// failedAttempt is one that left no trace in its message, because another followed in the same batch.
type failedAttempt struct {
	of   *message
	info saga.Info
	err  error
}

// instance is one saga instance of a batch, with the messages that are for it.
type instance struct {
	def     *saga.Definition
	asked   handle // how the first message named it
	status  instanceStatus
	session *saga.Session
	fault   error // why its messages fail, or wait for a newer program
	id      saga.ID
	version int64
	row     persistence.Row

	stepped bool // a message was decided on it
	write   int  // its place in the save, -1: none
	won     bool
}

type instanceStatus uint8

const (
	unknown   instanceStatus = iota
	absent                   // there is none, or it is of another saga
	busyHere                 // in the hands of another worker of this process
	busyThere                // in the hands of another transaction
	ours
	faulty // its state cannot be read
	newer  // its state is from a newer program
)

// name is how the instance is called in events and records.
func (i *instance) name() (sagaName, key string) {
	if i == nil {
		return "", ""
	}
	if i.session != nil {
		if in, err := i.session.Instance(); err == nil {
			return in.Saga, in.Key
		}
	}
	return i.def.Name(), i.asked.key
}
