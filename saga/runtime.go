package saga

import (
	"context"
	"reflect"
	"time"
)

// Runtime has the inputs of a step: the message in hand, the time, ids and limits. It must not change while the step
// runs; afterwards the runtime may use it for the next message, with a new In.
type Runtime struct {
	In  Delivery
	Now time.Time // the result of Context.Now
	// Clock is an upper bound of the database's clock at this moment. Delays count from it, so no message is early.
	Clock    func() time.Time
	NewID    func() ID
	Codec    Codec  // nil is JSON
	Endpoint string // of the step: From of the messages that it sends
	Limits   Limits

	// Admit, if not nil, is called with every command, event and answer before it becomes part of the step. It
	// returns an error if the message has no destination; that error is a fault of the step.
	Admit func(*Outgoing) error

	// Outgoing, if not nil, is called with every message, timeouts included, before it becomes part of the step, with
	// the handler's context. Compose calls it with Caller, unless Caller is nil. Outgoing adds headers with
	// Info.AddHeader. A header that the sender has set keeps its value, and other changes of the Info have no effect.
	// A header that WithHeader would refuse is a fault of the step. A panic of Outgoing fails the step like a panic
	// of the handler. Outgoing must not keep the Info.
	Outgoing func(ctx context.Context, i *Info)
	Caller   context.Context

	// Around, if not nil, is the middleware: it is called instead of the handler, and calls the handler at most once.
	// If it returns an error, whether the handler's or its own, the step is undone. The handler gets the message that
	// In.Body contains when Around calls the handler.
	Around func(ctx context.Context, handler func(context.Context) error) error
}

// Limits are the limits of a step. 0 is the default of each field.
type Limits struct {
	MaxBody     int           // bytes of one message; 0 is 1 MiB
	MaxState    int           // bytes of an instance's state; 0 is 1 MiB
	MaxHeaders  int           // of one message; 0 is 64
	MaxHeader   int           // bytes of one header's value, and of its name; 0 is 8 KiB
	HeaderBytes int           // of one message together; 0 is 64 KiB
	MaxDelay    time.Duration // 0 is 10 years
	MaxPending  int           // pending timeouts of one instance, which are in its row; 0 is 1,000
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

// clock returns the base of delays.
func (rt *Runtime) clock() time.Time {
	if rt.Clock == nil {
		return rt.Now
	}
	return rt.Clock()
}

func (rt *Runtime) codec() Codec {
	if rt.Codec == nil {
		return JSON
	}
	return rt.Codec
}

// Outcome is the result of one step, as data. At most one of Err, Discard and Missing is set; then Out and Cancelled
// are empty, and the step has not changed the instance.
type Outcome struct {
	Out       []Outgoing
	Cancelled []Cancelled
	Err       error  // the step failed; errors.As finds *PermanentError and *RetryAfterError
	Discard   string // the message is consumed, and the runtime records this reason
	Missing   bool   // the instance has completed and is remembered: act on Call.StepMissing and Call.Missing
	Completed bool   // the step has completed the instance
	RunOpen   bool   // the run of the message stays open: other work continues it
	// Unknown lists the fields of the stored state that the saga's state type does not have, although the StateVersion
	// is the same: a successful step stores the state without them. They are JSON names, at any depth, at most 20.
	Unknown []string
}

// Outgoing is one message that a step decided to send.
type Outgoing struct {
	Info    Info // a zero Due means at once, by the database's clock
	Body    []byte
	To      string // the endpoint; "" is by kind, and for a timer the sender's own endpoint
	GivenID bool   // WithID was used: duplicates are detected
	// MustRoute was used: publishing to no subscribed endpoint is an error.
	MustRoute bool
	Type      reflect.Type  // of the message; the history masks its secrets
	Delay     time.Duration // replaces Info.Due if the Runtime has no Clock: the database adds it to its clock
}

// Cancelled is a pending timeout that was cancelled or moved, or whose instance completed. The runtime may delete its
// row; otherwise it is discarded when it fires. An earlier step of the same batch may have sent it.
type Cancelled struct {
	ID  ID
	Due time.Time
}

// Instance is one saga instance as it is stored.
type Instance struct {
	ID           ID
	New          bool // not stored: the first successful step starts it
	Saga, Key    string
	Version      int64 // raised by the store, once per committed batch that changed the instance
	StateVersion int
	State        []byte
	Pending      []Pending
	Originator   Originator
}

// Originator is the sender of the message that started an instance, and the run that ends when the instance
// completes. ReplyToOriginator sends to it.
type Originator struct {
	Endpoint    string `json:"endpoint,omitempty"` // "" if it was started from outside
	MessageID   ID     `json:"message,omitzero"`
	Instance    ID     `json:"instance,omitzero"` // the saga instance that sent the start, or zero
	Correlation ID     `json:"correlation,omitzero"`
	Run         ID     `json:"run,omitzero"` // if a manifest emitted the start
	RunAttempt  int    `json:"run_attempt,omitempty"`
}

// Pending is a timeout that has not fired yet. Name is "" unless Named was used.
type Pending struct {
	Name string    `json:"name,omitempty"`
	Kind string    `json:"kind"`
	Due  time.Time `json:"due"`
	ID   ID        `json:"id"` // of the timeout's message
}
