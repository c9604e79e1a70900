package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/wire"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// decoder makes messages ready for their handlers, or decides the fate of those that cannot be understood.
type decoder struct {
	tally
	conn  *pgx.Conn // of the transaction; nil where handlers run outside of one
	xact  string    // that transaction, when handlers may end it
	arena queue.Arena

	messages  []*message
	found     int                         // rows that the statement has found, also those for which there was no memory
	runtime   saga.Runtime                // what steps run with
	reclaim   func(context.Context) error // takes a handler's settings back before the routes are read; may be nil
	inHand    *message                    // that a function of the user is called for
	cut       bool                        // the last messages were left before any step began
	fired     bool                        // messages have runs, see runs.go
	rehearses bool                        // a failure is written and taken back, see errRehearsed
}

// reset makes d ready for another transaction. Its memory serves again.
func (d *decoder) reset(conn *pgx.Conn) {
	clear(d.messages)
	d.arena.Reset()
	*d = decoder{
		tally: tally{ep: d.ep}, conn: conn, arena: d.arena, messages: d.messages[:0], reclaim: d.reclaim,
	}
}

// decode makes every message ready for its handler, or decides its fate: what cannot be understood is dead on its first
// attempt, what this program does not know yet waits for one that does. Users' functions run in it while the
// transaction stands still, so it has the time of a batch: what is not decoded by then is left. Claims have no
// transaction: see decodeClaimed.
func (d *decoder) decode() {
	now := time.Now()
	deadline := now.Add(min(d.ep.options.BatchTime, d.ep.options.StepTimeout))
	for n, m := range d.messages {
		if n > 0 && now.After(deadline) {
			d.messages, d.cut = d.messages[:n], true
			return
		}
		d.read(m)
		now = d.readBy(m, now)
	}
}

// newDecoder returns a decoder for messages outside of a transaction. begun is when the statement was sent that reads
// them.
func newDecoder(e *Endpoint, begun time.Time) *decoder {
	return &decoder{tally: tally{ep: e, dbTime: dbTime{begun: begun}}}
}

// decodeClaimed is decode for a leased endpoint. All of a claim is decoded, and the loop that claims does not end with
// a function of the user's that ends its goroutine.
func (d *decoder) decodeClaimed() {
	run.Each(len(d.messages), func(n int) {
		begun := time.Now()
		d.read(d.messages[n])
		d.readBy(d.messages[n], begun)
	}, func(n int) { d.fail(d.messages[n], saga.Permanent(fmt.Errorf("decoding it: %w", errReadExited))) })
}

// readBy makes a failure of a message that took too long to decode, and returns the time. The server may have ended the
// transaction meanwhile; so the failure is also remembered for when the message is taken again, and then it is not
// decoded.
func (d *decoder) readBy(m *message, begun time.Time) time.Time {
	now := time.Now()
	most := min(mostDecoding, d.ep.options.StepTimeout)
	if d.ep.handlers.leased {
		most = min(most, d.ep.options.Lease/2)
	}
	if took := now.Sub(begun); took > most {
		if m.fate == fateLeft {
			d.fail(m, fmt.Errorf("%w: decoding it took %v", errOverran, took.Round(time.Millisecond)))
		}
		m.unread = true
		d.ep.memory.failNext(m.ID, m.err)
	}
	return now
}

// read reads the header of a message, and what follows from it.
func (d *decoder) read(m *message) {
	d.inHand = m
	// a sender has written that, or the clock went back: what waits for a time would wait for ever
	if m.FirstFailed.After(d.now) {
		m.FirstFailed = d.now
	}
	m.delivery = saga.Delivery{
		Info: saga.Info{ID: m.ID, Kind: m.Kind, Attempt: m.Attempt + 1, Sent: m.Sent, Due: m.Due},
		Body: m.Body,
	}
	var err error
	m.firing.emitted, err = wire.ReadDelivery(m.Header, &m.delivery.Info)
	d.fired = d.fired || m.firing.emitted
	switch {
	case m.crash.guilty != nil:
		m.die("process died", m.crash.guilty)
	case errors.Is(err, wire.ErrNewer):
		d.newerHeader(m, err)
	case err != nil:
		d.fail(m, saga.Permanent(fmt.Errorf("header: %w", err)))
	default:
		d.prepare(m)
	}
}

// prepare finds the consumer and, for a saga, decodes the body and reads the key.
func (d *decoder) prepare(m *message) {
	if err := d.ep.memory.failureOf(m.ID); err != nil {
		m.judged = true
		d.rehearses = len(d.messages) == 1 && d.ep.memory.rehearses(m.ID)
		d.fail(m, err)
		return
	}
	c := d.ep.handlers.consumers[m.Kind]
	for c != nil && c.accept != nil { // an endpoint with a circle is refused
		body, err := d.convert(c, m.delivery.Body)
		if err != nil {
			d.fail(m, saga.Permanent(err))
			return
		}
		m.delivery.Body, m.delivery.Info.Kind = body, c.as
		c = d.ep.handlers.consumers[c.as]
	}
	if c == nil {
		c = d.ep.handlers.raw
	}
	if c == nil {
		d.unknownKind(m)
		return
	}
	m.consumer = c
	if c.def == nil {
		return
	}
	if m.undecided() {
		return // until its instance says whose it is, see assign
	}
	d.prepareCall(m)
}

// prepareCall decodes a message for its saga, and reads its key.
func (d *decoder) prepareCall(m *message) {
	call, err := m.consumer.def.Prepare(m.delivery, d.ep.bus.codec)
	if err != nil {
		m.unread = true
		d.fail(m, err)
		return
	}
	m.call = call
}

// convert runs the function of an Accept, which is a user's and may panic.
func (d *decoder) convert(c *consumer, old []byte) (body []byte, err error) {
	defer recovered(&err)
	return c.accept(old, d.ep.bus.codec)
}

// unknownPause grows with the time that a message has waited, a quarter of it: each look at a message writes its row
// anew, and what nobody has known for minutes may wait for one more.
func (d *decoder) unknownPause(m *message) time.Duration {
	if m.FirstFailed.IsZero() {
		return unknownWait
	}
	return max(unknownWait, min(d.now.Sub(m.FirstFailed)/4, newerWait))
}

// unknownKind: in a rolling deploy the new kind arrives before the new program is everywhere. It waits, which costs no
// attempt, and only when nobody has known it for a long time is it a dead letter.
func (d *decoder) unknownKind(m *message) {
	err := fmt.Errorf("%s: %w; this endpoint consumes %v", wire.Shown(m.Kind), ErrUnknownKind, d.ep.kinds())
	if d.waitedLong(m) {
		m.die("unknown kind", err)
		return
	}
	m.putBack(min(d.unknownPause(m), d.ep.options.UnknownKindTimeout), err)
}

// waitedLong reports whether m has waited for a program that understands it for as long as it may.
func (d *decoder) waitedLong(m *message) bool {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = d.now
	}
	return d.now.Sub(m.FirstFailed) >= d.ep.options.UnknownKindTimeout
}

// newerHeader leaves m to a program that reads its header, for as long as an unknown kind may wait: anybody who may
// write to the queue can say that a newer program did.
func (d *decoder) newerHeader(m *message, err error) {
	if d.waitedLong(m) {
		m.die(newerProgram, err)
		return
	}
	d.awaitNewerProgram(m, min(newerWait, d.ep.options.UnknownKindTimeout), err)
}

// awaitNewerProgram leaves m to a program that knows what wrote it, and says so once in a while.
func (d *decoder) awaitNewerProgram(m *message, wait time.Duration, err error) {
	m.putBack(wait, err)
	if d.ep.memory.newerSeen() {
		d.ep.bus.log.Warn("edda: messages wait for a newer program", "endpoint", d.ep.name, "message_id", m.ID.String(),
			"kind", wire.Shown(m.Kind), "error", err)
	}
}

// undecided reports whether a message is for one of several sagas, by the instance that it names.
func (m *message) undecided() bool {
	info := &m.delivery.Info
	return m.call == nil && m.consumer.others != nil && info.Intent != saga.Event && !info.Instance.IsZero()
}

var errReadExited = errors.New("a function ended its goroutine: runtime.Goexit, or FailNow of package testing")

// mostDecoding is how long the decoding of one message may take, with its key and its Accepts, however long a handler
// may.
const mostDecoding = 5 * time.Second

const (
	unknownWait = 5 * time.Second
	newerWait   = time.Minute
)

const newerProgram = "newer program" // the reason of such a dead letter
// runtimeOf returns what a step of m runs with. There is one for the whole batch, since steps run one after another.
func (d *decoder) runtimeOf(m *message) *saga.Runtime {
	d.runtime.In = m.delivery
	return &d.runtime
}

// prepareTurn sets what is the same for all steps of the batch.
func (d *decoder) prepareTurn(ctx context.Context) {
	d.runtime = saga.Runtime{
		Now: d.now, Clock: d.clock, NewID: newID, Codec: d.ep.bus.codec, Endpoint: d.ep.name,
		Admit: func(out *saga.Outgoing) error { return d.admit(ctx, out) },
	}
}

// route makes sure, while the step can still be undone, that everything it sends has somewhere to go.
func (d *decoder) route(ctx context.Context, out []saga.Outgoing) error {
	for n := range out {
		if err := d.admit(ctx, &out[n]); err != nil {
			return saga.Permanent(err)
		}
	}
	return nil
}

// admit looks for the queue of one message, and once more in the newest routes.
func (d *decoder) admit(ctx context.Context, out *saga.Outgoing) error {
	if out.Info.Intent == saga.Timer || out.Info.Intent == saga.Event && out.To == "" {
		return nil
	}
	if _, err := d.destination(out); err == nil {
		return nil
	}
	if d.reclaim != nil {
		if err := d.reclaim(ctx); err != nil {
			return err
		}
	}
	if _, err := d.ep.bus.routes.Reload(ctx, d.reader()); err != nil {
		return err
	}
	_, err := d.destination(out)
	return err
}

// reader is where a step may read the routes: handlers of a leased endpoint have no connection.
func (d *decoder) reader() queue.Queryer {
	if d.conn == nil {
		return d.ep.bus.pool
	}
	return d.conn
}

// destination is the queue of a message that goes to exactly one.
func (d *decoder) destination(out *saga.Outgoing) (*queue.Queue, error) {
	if out.Info.Intent == saga.Timer && out.To == "" {
		return d.ep.queue, nil
	}
	known := d.ep.bus.routes.Current()
	if known == nil {
		return nil, ErrNoRoute
	}
	return known.Command(out.Info.Kind, out.To)
}
