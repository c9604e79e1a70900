package saga

import (
	"context"
	"reflect"
	"time"
)

// Runtime is what a step runs with: the message in hand, the time, ids and limits. It must not change
// while the step runs; afterwards it serves the next message with another In.
type Runtime struct {
	In  Delivery
	Now time.Time // what Context.Now returns
	// Clock is an upper bound of the database's clock at this moment. Delays count from it, so no message is early.
	Clock    func() time.Time
	NewID    func() ID
	Codec    Codec  // nil is JSON
	Endpoint string // of the step: From of the messages that it sends
	Limits   Limits

	// Admit, if not nil, is called with every command, event and answer before it becomes part of the step. It returns
	// an error if the message has no destination; the error is a fault of the step.
	Admit func(*Outgoing) error

	// Outgoing, if not nil, is called with every message, timeouts included, before it becomes part of the step, with
	// the handler's context; and by Compose, with Caller, unless that is nil. It adds headers with Info.AddHeader. A
	// header that the sender has set keeps its value, and other changes of the Info have no effect. A header that
	// WithHeader would refuse is a fault of the step. A panic of Outgoing fails the step as a panic of the handler
	// does. It must not keep the Info.
	Outgoing func(ctx context.Context, i *Info)
	Caller   context.Context

	// Around, if not nil, is the middleware: it is called instead of the handler, and calls the handler at most once.
	// An error that it returns undoes the step, whether it is the handler's or its own. The handler gets the message
	// that In.Body has when Around calls the handler.
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

// clock returns the time from which delays count.
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
// are empty, and the instance is as it was before the step.
type Outcome struct {
	Out       []Outgoing
	Cancelled []Cancelled
	Err       error  // the step failed; errors.As finds *PermanentError and *RetryAfterError
	Discard   string // the message is consumed, and the runtime records this reason
	Missing   bool   // the instance has completed and is remembered: do what Call.StepMissing and Call.Missing say
	Completed bool   // the step has completed the instance
	RunOpen   bool   // the run of the message stays open: its work goes on elsewhere
	// Unknown are the fields of the stored state that the state of the saga does not have, although its StateVersion is
	// the same: a step that succeeds stores the state without them. They are names in JSON, of any depth, at most 20.
	Unknown []string
}

// Outgoing is one message that a step decided to send.
type Outgoing struct {
	Info    Info // a zero Due means at once, by the database's clock
	Body    []byte
	To      string // the endpoint; "" is by kind, and for a timer the sender's own endpoint
	GivenID bool   // WithID was used: duplicates are detected
	// MustRoute was used: an event that no endpoint is subscribed to is an error
	MustRoute bool
	Type      reflect.Type  // of the message; its secrets are masked in the history
	Delay     time.Duration // instead of Info.Due if the Runtime has no Clock: the database adds it to its clock
}

// Cancelled is a pending timeout that was cancelled or moved, or whose instance completed. The runtime may delete its
// row; otherwise it is discarded when it fires. An earlier step of the same batch may have sent it.
type Cancelled struct {
	ID  ID
	Due time.Time
}

// Instance is one running saga as a store knows it.
type Instance struct {
	ID           ID
	New          bool // not stored: the first good step starts it
	Saga, Key    string
	Version      int64 // raised by the store, once per committed batch that changed the instance
	StateVersion int
	State        []byte
	Pending      []Pending
	Originator   Originator
}

// Originator is the sender of the message that started an instance, to which ReplyToOriginator sends, and the run that
// ends when the instance completes.
type Originator struct {
	Endpoint    string `json:"endpoint,omitempty"` // "" if it was started from outside
	MessageID   ID     `json:"message,omitzero"`
	Instance    ID     `json:"instance,omitzero"` // the saga instance that sent the start, if one did
	Correlation ID     `json:"correlation,omitzero"`
	Run         ID     `json:"run,omitzero"` // if a manifest emitted the start
	RunAttempt  int    `json:"run_attempt,omitempty"`
}

// Pending is a timeout that an instance waits for. Name is "" unless Named was used.
type Pending struct {
	Name string    `json:"name,omitempty"`
	Kind string    `json:"kind"`
	Due  time.Time `json:"due"`
	ID   ID        `json:"id"` // of the timeout's message
}
