package message

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Decoder prepares messages for their handlers, or decides the fate of messages that cannot be understood.
type Decoder struct {
	Tally
	Conn        *pgx.Conn // of the transaction; nil if handlers run outside of a transaction
	Transaction string    // id of that transaction, if handlers may end it
	Arena       queue.Arena

	Messages  []*Message
	Runtime   saga.Runtime                // the environment of steps
	Admits    func(*saga.Outgoing) error  // finds a queue for a message of a step; nil looks in the routes
	Reclaim   func(context.Context) error // resets a handler's settings before the routes are read; may be nil
	Hand      *run.Hand                   // calls the functions of the user; nil if each claim has its own
	InHand    *Message                    // the message of the function of the user that is running
	Cut       bool                        // the last messages were left before the first step began
	Fired     bool                        // a message has a run, see runs.go
	Rehearses bool                        // a failure is written and rolled back, see outcome.ErrRehearsed
}

// Reset prepares d for the next transaction, and reuses its memory. hand calls the functions of the user.
func (d *Decoder) Reset(conn *pgx.Conn, hand *run.Hand) {
	clear(d.Messages)
	d.Arena.Reset()
	*d = Decoder{
		Tally: Tally{To: d.To}, Conn: conn, Arena: d.Arena, Messages: d.Messages[:0], Reclaim: d.Reclaim,
		Hand: hand,
	}
}

// Decode prepares every message for its handler, or decides its fate: a message that cannot be understood is dead on
// its first attempt, a message that this program does not support yet waits for one that does. Users' functions run
// in it while the transaction is idle, so it has the time of a batch: messages that are not decoded by then are left.
// Claims have no transaction: see DecodeClaimed.
func (d *Decoder) Decode(ctx context.Context) {
	d.prepareRuntime(ctx)
	defer d.Hand.Leave()
	now := time.Now()
	deadline := now.Add(min(d.To.Options.BatchTime, d.To.Options.StepTimeout))
	for n, m := range d.Messages {
		if n > 0 && now.After(deadline) {
			d.CutAt(n)
			return
		}
		d.read(m, now)
		now = d.readBy(m, now)
	}
}

// Add adds a message to the transaction.
func (d *Decoder) Add(m *Message) { d.Messages = append(d.Messages, m) }

// Take adds a message whose row the transaction has locked. touched says that a process had the row in hand before.
func (d *Decoder) Take(m *Message, tid pg.TID, touched bool) {
	m.TID, m.Crash.Touched = tid, touched
	m.taken.Attempt, m.taken.FirstFailed = m.Attempt, m.FirstFailed
	d.Messages = append(d.Messages, m)
}

// Keep leaves all messages out of the transaction except those with keep. They stay in the queue.
func (d *Decoder) Keep(keep func(*Message) bool) {
	d.Messages = slices.DeleteFunc(d.Messages, func(m *Message) bool { return !keep(m) })
}

// CutAt leaves all messages after the first n to a later transaction.
func (d *Decoder) CutAt(n int) { d.Messages, d.Cut = d.Messages[:n], true }

// Carry counts the failures of a message that was judged before the transaction.
func (d *Decoder) Carry(m *Message, of Failed) {
	d.Failures += of.Failures
	if of.Failure != nil {
		d.Failure = of.Failure
	}
	if of.Pausing != nil {
		d.Pausing = m
	}
	d.Fired = d.Fired || m.Firing.Emitted
}

// NewDecoder returns a decoder for messages outside of a transaction. begun is when the statement that reads them was
// sent.
func NewDecoder(to *Recipient, begun time.Time) *Decoder {
	return &Decoder{Tally: Tally{To: to, DBTime: DBTime{Begun: begun}}}
}

// DecodeClaimed is Decode for a leased endpoint. All messages of a claim are decoded; the claimer's loop survives a
// function of the user that ends its goroutine, and does not wait for one that does not return. also, if it is not
// nil, is called with the index of each message after its decoding, as a part of it.
func (d *Decoder) DecodeClaimed(work context.Context, also func(n int)) {
	d.prepareRuntime(work)
	d.To.Options.Calls.Each(d.To.Options.Decoding, len(d.Messages), func(h *run.Hand, n int) {
		d.Hand = h
		begun := time.Now()
		d.read(d.Messages[n], begun)
		d.readBy(d.Messages[n], begun)
		if also != nil {
			also(n)
		}
	}, func(n int, err error) {
		m := d.Messages[n]
		if d.Fail(m, saga.Permanent(fmt.Errorf("decoding it: %w", err))); errors.Is(err, run.ErrLeft) {
			d.To.Memory.FailNext(m.ID, m.Err) // if this is not written, the message is not decoded once more
		}
	})
	d.Hand = nil
}

// CallBy makes h call the functions of the user.
func (d *Decoder) CallBy(h *run.Hand) { d.Hand = h }

// Enter notes that functions of the user are about to be called for m.
func (d *Decoder) Enter(m *Message, begun time.Time) {
	d.InHand = m
	d.Hand.Enter(m.Kind, m.ID, begun)
}

// KeyOf calls the user's function for the key of m. If that returns an error or takes too long, m fails.
func (d *Decoder) KeyOf(m *Message) (key string) {
	hand, begun := d.Hand, time.Now()
	d.Enter(m, begun)
	key, err := m.keyOf(d.To.Codec)
	hand.Return()
	if d.readBy(m, begun); err != nil && m.Fate == FateLeft {
		d.Fail(m, saga.Permanent(fmt.Errorf("key of %s: %w", m.Kind, err)))
	}
	return key
}

// readBy makes a message fail that took too long to decode, and returns the time. The server may have ended the
// transaction in the meantime; so the failure is also remembered for the next take, and then the message is not
// decoded.
func (d *Decoder) readBy(m *Message, begun time.Time) time.Time {
	now := time.Now()
	if took := now.Sub(begun); took > d.To.Options.Decoding {
		if m.Fate == FateLeft {
			d.Fail(m, fmt.Errorf("%w: decoding it took %v", handlers.ErrOverran, took.Round(time.Millisecond)))
		}
		m.unread = true
		d.To.Memory.FailNext(m.ID, m.Err)
	}
	return now
}

// read reads the header of a message, and sets the fields that follow from it.
func (d *Decoder) read(m *Message, begun time.Time) {
	d.Enter(m, begun)
	// a sender has written that, or the clock went back: a message that waits for a time would wait forever
	if m.FirstFailed.After(d.Now) {
		m.FirstFailed = d.Now
	}
	m.Delivery = saga.Delivery{
		Info: saga.Info{ID: m.ID, Kind: m.Kind, Attempt: m.Attempt + 1, Sent: m.Sent, Due: m.Due},
		Body: m.Body,
	}
	var err error
	m.Firing.Emitted, err = wire.ReadDelivery(m.Header, &m.Delivery.Info)
	d.Fired = d.Fired || m.Firing.Emitted
	switch {
	case m.Crash.guilty != nil:
		m.Die("process died", m.Crash.guilty)
	case errors.Is(err, wire.ErrNewer):
		d.newerHeader(m, err)
	case err != nil:
		d.Fail(m, saga.Permanent(fmt.Errorf("header: %w", err)))
	default:
		d.prepare(m)
	}
}

// prepare finds the consumer and, for a saga, decodes the body and reads the key.
func (d *Decoder) prepare(m *Message) {
	if err := d.To.Memory.FailureOf(m.ID); err != nil {
		m.Judged = true
		d.Rehearses = len(d.Messages) == 1 && d.To.Memory.Rehearses(m.ID)
		d.Fail(m, err)
		return
	}
	if wire.HasExpired(&m.Delivery.Info, d.Now) {
		m.Drop(wire.Expired)
		return
	}
	c := d.To.Handlers.Consumers[m.Kind]
	for c != nil && c.Accept != nil { // an endpoint with a circular chain of Accepts is refused
		body, err := d.convert(c, m.Delivery.Body)
		if err != nil {
			d.Fail(m, saga.Permanent(err))
			return
		}
		m.Delivery.Body, m.Delivery.Info.Kind = body, c.As
		c = d.To.Handlers.Consumers[c.As]
	}
	if c == nil {
		c = d.To.Handlers.Raw
	}
	if c == nil {
		d.unknownKind(m)
		return
	}
	m.Consumer = c
	if c.Definition == nil {
		return
	}
	if m.Undecided() {
		return // until its instance shows the saga, see assign
	}
	d.prepareCall(m)
}

// Assign makes c the consumer of m, and decodes m for the saga of c.
func (d *Decoder) Assign(m *Message, c *handlers.Consumer) {
	if m.Consumer = c; m.Call == nil || m.Call.Definition() != c.Definition {
		d.prepareCall(m)
	}
}

// prepareCall decodes a message for its saga, and reads its key.
func (d *Decoder) prepareCall(m *Message) {
	hand := d.Hand
	d.Enter(m, time.Now())
	call, err := m.Consumer.Definition.Prepare(m.Delivery, d.To.Codec)
	hand.Return()
	if err != nil {
		m.unread = true
		d.Fail(m, err)
		return
	}
	m.Call = call
}

// convert calls the function of an Accept, which is a user's and may panic.
func (d *Decoder) convert(c *handlers.Consumer, old []byte) (body []byte, err error) {
	defer d.Hand.Return()
	defer handlers.Recovered(&err)
	return c.Accept(old, d.To.Codec)
}

// Undecided reports whether a message may be for one of several sagas, depending on the instance that it names.
func (m *Message) Undecided() bool {
	info := &m.Delivery.Info
	return m.Call == nil && m.Consumer.Others != nil && info.Intent != saga.Event && !info.Instance.IsZero()
}

// runtimeOf returns the environment of a step of m. There is one for the whole batch, since steps run one after the
// other.
func (d *Decoder) runtimeOf(m *Message) *saga.Runtime {
	d.Runtime.In = m.Delivery
	return &d.Runtime
}

// prepareRuntime sets the fields that all steps of the batch share.
func (d *Decoder) prepareRuntime(ctx context.Context) {
	admit := d.Admits
	if admit == nil {
		admit = func(out *saga.Outgoing) error { return d.admit(ctx, out) }
	}
	d.Runtime = saga.Runtime{
		Now: d.Now, Clock: d.Clock, NewID: d.To.NewID, Codec: d.To.Codec, Endpoint: d.To.Name,
		Admit: admit, Outgoing: d.To.Hooks.Outgoing,
	}
}

// route checks, while the step can still be undone, that there is a queue for every message it sends.
func (d *Decoder) route(ctx context.Context, out []saga.Outgoing) error {
	for n := range out {
		if err := d.admit(ctx, &out[n]); err != nil {
			return saga.Permanent(err)
		}
	}
	return nil
}

// admit looks for the queue of one message, and if it finds no queue, again in the newest routes.
func (d *Decoder) admit(ctx context.Context, out *saga.Outgoing) error {
	if out.Info.Intent == saga.Timer || out.Info.Intent == saga.Event && out.To == "" && !out.MustRoute {
		return nil
	}
	if err := d.routed(out); err == nil {
		return nil
	}
	if d.Reclaim != nil {
		if err := d.Reclaim(ctx); err != nil {
			return err
		}
	}
	if _, err := d.To.Routes.Reload(ctx, d.reader()); err != nil {
		return err
	}
	return d.routed(out)
}

// routed returns an error if there is no queue for a message, or nil.
func (d *Decoder) routed(out *saga.Outgoing) error {
	if out.Info.Intent == saga.Event && out.To == "" {
		if known := d.To.Routes.Current(); known == nil || len(known.Kinds[out.Info.Kind]) == 0 {
			return NoSubscriber(out.Info.Kind, known)
		}
		return nil
	}
	_, err := d.destination(out)
	return err
}

// NoSubscriber is the error of an event that must have a route and has no subscriber. known may be nil.
func NoSubscriber(kind string, known *queue.Routes) error {
	hint := ""
	if known != nil {
		hint = wire.Hint(kind, known.Kinds)
	}
	return fmt.Errorf("publish %s: %w%s: run an endpoint that handles it once, or install it", kind, queue.ErrNoRoute,
		hint)
}

// reader returns the connection for reading the routes in a step: handlers of a leased endpoint have no connection of
// their own.
func (d *Decoder) reader() pg.Queryer {
	if d.Conn == nil {
		return d.To.Pool
	}
	return d.Conn
}

// destination returns the queue of a message that goes to exactly one.
func (d *Decoder) destination(out *saga.Outgoing) (*queue.Queue, error) {
	if out.Info.Intent == saga.Timer && out.To == "" {
		return d.To.Queue, nil
	}
	known := d.To.Routes.Current()
	if known == nil {
		return nil, queue.ErrNoRoute
	}
	return known.Command(out.Info.Kind, out.To)
}

// Gone yields the messages that have left the queue, or were written anew.
func (d *Decoder) Gone(yield func(saga.ID) bool) {
	for _, m := range d.Messages {
		if m.Fate != FateLeft && !yield(m.ID) {
			return
		}
	}
}
