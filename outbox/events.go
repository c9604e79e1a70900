package outbox

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// Event is something that has happened at the border. It is emitted after the commit that makes it true.
type Event interface{ event() }

// Relayed says that a relay has given messages to the other side and deleted them here, in one transaction.
type Relayed struct {
	Endpoint string // the relay's name
	Messages int
	Bytes    int64         // of their bodies
	Lag      time.Duration // the longest wait of a message, from when it was sent, or due, to the commit
	Forward  time.Duration // the time of forward alone, failures included
}

// RelayHeld says that this process has begun or ceased to be the one that relays.
type RelayHeld struct {
	Endpoint string
	Holding  bool
}

// Ingested says that one Ingest has committed.
type Ingested struct {
	Source   string
	Endpoint string // "" where they were published
	Accepted int
	Repeated int // were there before
	Unwanted int // events without a subscriber
	Dead     int
	Unnamed  int // of all these, how many had no id
}

// Retried says that an attempt failed and that another follows after Delay.
type Retried struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Delay    time.Duration
}

// DeadLettered says that a message was given up and stored with its bytes.
type DeadLettered struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
}

// RunFailed says that the message of a manifest's run was given up. Its run has the error.
type RunFailed struct {
	Endpoint string
	Info     saga.Info
	Err      error
	Reason   string
	Final    bool // another attempt would end alike
}

// Discarded says that a message was consumed without effect, and the reason stored.
type Discarded struct {
	Endpoint string
	Info     saga.Info
	Reason   string
}

func (Relayed) event()      {}
func (RelayHeld) event()    {}
func (Ingested) event()     {}
func (Retried) event()      {}
func (DeadLettered) event() {}
func (RunFailed) event()    {}
func (Discarded) event()    {}
