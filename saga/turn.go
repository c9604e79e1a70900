package saga

import (
	"context"
	"time"
)

// Turn is everything a runtime lends to one step: the message in hand, time, ids, limits. It must not change
// while the step runs; afterwards it serves the next message with another In.
type Turn struct {
	In  Delivery
	Now time.Time // what Context.Now returns
	// an upper bound of the store's clock at this moment: delays count from it, so nothing is early
	Clock    func() time.Time
	NewID    func() ID
	Codec    Codec  // nil is JSON
	Endpoint string // the endpoint the step runs in: From of what it sends
	Limits   Limits

	// Admit, when not nil, is asked about every command, event and answer before it becomes part of the step: has it
	// anywhere to go? An error is a fault of the step.
	Admit func(*Outgoing) error

	// Around, when not nil, is called in place of the handler, and calls the handler at most once: middleware. An error
	// that it returns undoes the step, whether it is the handler's or its own. The handler gets the message of In.Body
	// as that is when Around calls it.
	Around func(ctx context.Context, handler func(context.Context) error) error
}

// Limits bounds what a step may ask for. In each field 0 is the default.
type Limits struct {
	MaxBody     int           // bytes of one message; 0 is 1 MiB
	MaxState    int           // bytes of an instance's state; 0 is 1 MiB
	MaxHeaders  int           // of one message; 0 is 64
	MaxHeader   int           // bytes of one header's value, and of its name; 0 is 8 KiB
	HeaderBytes int           // of one message together; 0 is 64 KiB
	MaxDelay    time.Duration // 0 is 10 years
	MaxPending  int           // timeouts of one instance: they live in its row; 0 is 1,000
	MaxOut      int           // messages of one step; 0 is 10,000
	MaxOutBytes int           // of their bodies together; 0 is 64 MiB
}

const (
	mebibyte  = 1 << 20
	tenYears  = 10 * 365 * 24 * time.Hour
	maxKey    = 512
	microsec  = time.Microsecond
	smallText = 4 << 10
)

func (l Limits) maxBody() int            { return or(l.MaxBody, mebibyte) }
func (l Limits) maxState() int           { return or(l.MaxState, mebibyte) }
func (l Limits) maxHeaders() int         { return or(l.MaxHeaders, 64) }
func (l Limits) maxHeader() int          { return or(l.MaxHeader, 8<<10) }
func (l Limits) headerBytes() int        { return or(l.HeaderBytes, 64<<10) }
func (l Limits) maxDelay() time.Duration { return or(l.MaxDelay, tenYears) }
func (l Limits) maxPending() int         { return or(l.MaxPending, 1000) }
func (l Limits) maxOut() int             { return or(l.MaxOut, 10_000) }
func (l Limits) maxOutBytes() int        { return or(l.MaxOutBytes, 64*mebibyte) }

func or[N int | time.Duration](n, standard N) N {
	if n > 0 {
		return n
	}
	return standard
}

func (t *Turn) codec() Codec {
	if t.Codec == nil {
		return JSON
	}
	return t.Codec
}

// Outcome is what should happen because of one step, as data. At most one of Err and Discard is set; then
// Out and Cancelled are empty, and the instance is as it was before the step.
type Outcome struct {
	Out       []Outgoing
	Cancelled []Cancelled
	Err       error  // the step failed; look for *PermanentError and *RetryAfterError with errors.As
	Discard   string // consumed with this reason, which the runtime records
}

// Outgoing is one message that a step decided to send.
type Outgoing struct {
	Info    Info // Due zero: at once, stamped by the database
	Body    []byte
	To      string        // an explicit endpoint; "" is by kind, and for a timer the sender's own endpoint
	GivenID bool          // WithID was used: duplicates are detected
	Delay   time.Duration // set in place of Info.Due when the Turn has no Clock: the database adds it to its own
}

// Cancelled is a pending timeout that was cancelled, moved or completed away. Its row may be deleted as a
// courtesy; left alone, it is discarded when it fires. It may have been sent by an earlier step of the same batch.
type Cancelled struct {
	ID  ID
	Due time.Time
}

// Instance is one running saga as a store knows it.
type Instance struct {
	ID           ID
	New          bool // never stored: the first good step starts it
	Saga, Key    string
	Version      int64 // raised by the store, once per committed batch that changed the instance
	StateVersion int
	State        []byte
	Pending      []Pending
	Originator   Originator
}

// Originator is who started an instance: where ReplyToOriginator goes, and the run that ends when the instance
// completes.
type Originator struct {
	Endpoint    string `json:"endpoint,omitempty"` // "" when it was started from outside
	MessageID   ID     `json:"message,omitzero"`
	Instance    ID     `json:"instance,omitzero"` // the saga instance that sent the start, if one did
	Correlation ID     `json:"correlation,omitzero"`
	Run         ID     `json:"run,omitzero"` // when a manifest emitted the start
	RunAttempt  int    `json:"run_attempt,omitempty"`
}

// Pending is a timeout that an instance waits for. Name is "" unless Named was used.
type Pending struct {
	Name string    `json:"name,omitempty"`
	Kind string    `json:"kind"`
	Due  time.Time `json:"due"`
	ID   ID        `json:"id"` // of the timeout's message
}
