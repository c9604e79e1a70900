package event

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// Event is a report of something that has happened. Its types are the types of this package.
type Event interface{ event() }

// Handled means that a message was consumed and its effects are committed. It is not emitted for a message that was
// discarded, such as a timeout that was cancelled on its way.
type Handled struct {
	Endpoint string
	Info     saga.Info
	Saga     string        // "" for a plain handler
	Key      string        // of the instance
	Step     time.Duration // the duration of the handler
	Critical time.Duration // from the sending or due time, the later one, to the commit, by the database's clock
}

// Retried means that an attempt failed and a retry follows: after Delay, or, if Delay is 0, at once or in the same
// batch. It is emitted once for each such attempt; Info.Attempt is its number.
type Retried struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Delay    time.Duration
}

// DeadLettered means that a message failed permanently and was stored with its bytes. It is emitted once, with the
// error of the last attempt and the rule that ended it.
type DeadLettered struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
}

// RunFailed means that a message of a manifest failed permanently. It is emitted instead of DeadLettered, because the
// message is not stored: its run (Info.Firing) has the error, and is sent again while its manifest has retries. If
// Final is set, the run is dead at once, because a retry cannot succeed.
type RunFailed struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
	Final    bool
}

// Discarded means that a message was consumed without effect, and the reason was stored: its handler or the policy
// discarded it, or it found no instance.
type Discarded struct {
	Endpoint string
	Info     saga.Info
	Reason   string
}

// Conflicted means that another transaction changed the instance first. The message is still in the queue, or back in
// it. It is emitted after the batch has committed its other messages.
type Conflicted struct {
	Endpoint string
	Info     saga.Info
	Saga     string
	Key      string
}

// ClaimLost means that a leased endpoint has lost a message: the lease could not be extended, or another process has
// claimed the message. The message is in the queue, or that process has ended it. Nothing that the handler sent is
// written.
type ClaimLost struct {
	Endpoint string
	Info     saga.Info
}

// BatchDone means that one transaction of an endpoint has committed. It is emitted after the events of its messages,
// and not for a take that found no message.
type BatchDone struct {
	Endpoint string
	Taken    int // messages whose rows were locked
	Handled  int
	Left     int // messages that stayed in the queue
	Took     time.Duration
}

// BatchFailed means that one transaction was rolled back. It is emitted before the worker pauses. All of its messages
// are still in the queue, unless Err is the error of a COMMIT whose reply was lost.
type BatchFailed struct {
	Endpoint string
	Taken    int
	Err      error
}

// Slowed means that no message has succeeded for a while, so that the endpoint of this process now tries one message
// at a time. The worker with the last failure emits it.
type Slowed struct {
	Endpoint string
	Failures int   // attempts that have failed since the last success
	Err      error // the error of the last of these attempts
}

// Recovered means that a message was handled after Slowed, so that the endpoint of this process continues with all
// its workers.
type Recovered struct {
	Endpoint string
	SlowFor  time.Duration
}

// Paused means that this process has read that the endpoint is paused. The process takes no more messages, and
// finishes the messages in hand. Paused is also emitted at the start of a Run.
type Paused struct {
	Endpoint string
	Reason   string
}

// Resumed means that this process has read that the endpoint is no longer paused.
type Resumed struct{ Endpoint string }

// ConcurrencySet means that this process has read that an operator set or reset the endpoint's number of workers. It
// is also emitted at the start of a Run, if a number is set.
type ConcurrencySet struct {
	Endpoint    string
	Concurrency int // workers of this process from now on, while the endpoint is not paused
}

// Ingested means that one Ingest has committed.
type Ingested struct {
	Source   string
	Endpoint string // "" if the messages were published
	Accepted int
	Repeated int // recorded before
	Unwanted int // events without a subscriber
	Dead     int
	Unnamed  int // of all these, the number without an id
}

// Relayed means that a relay has given messages to the other side and deleted them here, in one transaction.
type Relayed struct {
	Endpoint string // the relay's name
	Messages int
	Bytes    int64         // of their bodies
	Lag      time.Duration // the longest wait of a message, from the sending or due time, the later one, to the commit
	Forward  time.Duration // the duration of forward alone, failures included
}

// RelayHeld means that this process has begun or stopped relaying.
type RelayHeld struct {
	Endpoint string
	Holding  bool
}

func (Handled) event()        {}
func (Retried) event()        {}
func (DeadLettered) event()   {}
func (RunFailed) event()      {}
func (Discarded) event()      {}
func (Conflicted) event()     {}
func (ClaimLost) event()      {}
func (BatchDone) event()      {}
func (BatchFailed) event()    {}
func (Slowed) event()         {}
func (Recovered) event()      {}
func (Paused) event()         {}
func (Resumed) event()        {}
func (ConcurrencySet) event() {}
func (Ingested) event()       {}
func (Relayed) event()        {}
func (RelayHeld) event()      {}
