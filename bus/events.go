package bus

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// Event is something that has happened: it is emitted after the commit that makes it true, in the order of
// the batch. An event whose commit had an unknown outcome is not emitted.
type Event interface{ event() }

// Handled: a message was consumed and its effects are committed.
type Handled struct {
	Endpoint string
	Info     saga.Info
	Saga     string        // "" for a plain handler
	Key      string        // of the instance
	Step     time.Duration // the handler's own time
	Critical time.Duration // from when the message was sent, or due, to its commit, by the database's clock
}

// Retried: a message failed, and was written back for another attempt after Delay.
type Retried struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Delay    time.Duration
}

// DeadLettered: a message was given up and stored with its bytes.
type DeadLettered struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
}

// Discarded: a message was consumed without effect, and the reason stored.
type Discarded struct {
	Endpoint string
	Info     saga.Info
	Reason   string
}

// Conflicted: somebody else changed the instance first; the message is still in the queue.
type Conflicted struct {
	Endpoint string
	Info     saga.Info
	Saga     string
	Key      string
}

// BatchDone: one transaction of an endpoint has committed.
type BatchDone struct {
	Endpoint string
	Taken    int // messages whose rows were locked
	Handled  int
	Left     int // stayed in the queue
	Took     time.Duration
}

// BatchFailed: one transaction was rolled back; all of its messages are still in the queue, unless the error is
// that of a COMMIT whose reply was lost.
type BatchFailed struct {
	Endpoint string
	Taken    int
	Err      error
}

func (Handled) event()      {}
func (Retried) event()      {}
func (DeadLettered) event() {}
func (Discarded) event()    {}
func (Conflicted) event()   {}
func (BatchDone) event()    {}
func (BatchFailed) event()  {}
