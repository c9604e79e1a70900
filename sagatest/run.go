package sagatest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/fields"
	"github.com/edda-go/edda/saga"
)

// ErrMissing means that the message found no instance, may not start one, and is not discarded. The bus would retry
// it, or make it a dead letter.
var ErrMissing = errors.New("no instance")

// Run has the instances of one definition, a queue of timeouts and a clock. It belongs to one goroutine at a time.
type Run struct {
	t     testing.TB
	def   *saga.Definition
	store *Store
	codec *recorder
	ids   counter
	now   time.Time

	later    queue
	sent     []saga.Outgoing // since the last Sent
	asked    []saga.Outgoing // all sent messages that were not answered yet
	discards []string        // since the last Discarded
}

// New starts a run at 2026-01-01 12:00 UTC. It fails t if the definition has a fault, or if a message has a field
// that saga.JSON, the codec of a run, does not carry.
func New(t testing.TB, d *saga.Definition) *Run {
	t.Helper()
	err := d.Err()
	for _, k := range d.Kinds() {
		for _, fault := range fields.OfMessage(k.Type) {
			err = errors.Join(err, fmt.Errorf("saga %s: message %v: %w", d.Name(), k.Type, fault))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Run{
		t: t, def: d, store: NewStore(), codec: &recorder{types: map[string]reflect.Type{}},
		now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
}

// Now returns the time of the run's clock, which Context.Now returns in the next step.
func (r *Run) Now() time.Time { return r.now }

// Deliver delivers m as a command from outside, and returns the error of the step. With Delay or At the message waits
// for Advance. If there is no instance, the message is in Discarded, or the error is ErrMissing.
func (r *Run) Deliver(m saga.Message, o ...saga.SendOption) error {
	r.t.Helper()
	return r.deliver(saga.Command, "", m, o)
}

// DeliverFrom delivers m as a command of another endpoint; Reply and ReplyToOriginator send to that endpoint.
func (r *Run) DeliverFrom(endpoint string, m saga.Message, o ...saga.SendOption) error {
	r.t.Helper()
	return r.deliver(saga.Command, endpoint, m, o)
}

// Publish delivers m as an event of another endpoint.
func (r *Run) Publish(endpoint string, m saga.Message, o ...saga.SendOption) error {
	r.t.Helper()
	return r.deliver(saga.Event, endpoint, m, o)
}

func (r *Run) deliver(intent saga.Intent, from string, m saga.Message, o []saga.SendOption) error {
	r.t.Helper()
	rt := r.runtime(saga.Delivery{})
	rt.Endpoint = from
	out, err := rt.Compose(intent, m, o...)
	if err != nil {
		r.t.Fatalf("sagatest: deliver %v", err)
	}
	return r.accept(saga.Delivery{Info: out.Info, Body: out.Body}).err()
}

// accept steps a delivery, or queues it for Advance if it is due later.
func (r *Run) accept(in saga.Delivery) happened {
	if in.Info.Due.After(r.now) {
		r.later.push(in)
		return happened{in: in}
	}
	in.Info.Attempt, in.Info.Due = 1, r.now
	h := r.step(in)
	r.note(h)
	return h
}

func (r *Run) note(h happened) {
	if h.out.Discard != "" {
		r.discards = append(r.discards, h.in.Info.Kind+": "+h.out.Discard)
	}
}

// Reply delivers m as the answer to a message that the saga has sent: the first unanswered one that equals to. It
// returns the error of the step, and fails the test if there is no such message.
func (r *Run) Reply(to, m saga.Message) error {
	r.t.Helper()
	body, err := saga.JSON.Encode(to)
	if err != nil {
		r.t.Fatalf("sagatest: reply to %s: %v", to.Kind(), err)
	}
	at := slices.IndexFunc(r.asked, func(o saga.Outgoing) bool {
		return o.Info.Kind == to.Kind() && bytes.Equal(o.Body, body)
	})
	if at < 0 {
		r.t.Fatalf("sagatest: reply to %s %s: no unanswered message of this kind was sent", to.Kind(), body)
	}
	in, err := r.answer(at, m)
	if err != nil {
		r.t.Fatalf("sagatest: %v", err)
	}
	return r.accept(in).err()
}

// answer composes m as the receiver of the message with this index of asked would.
func (r *Run) answer(at int, m saga.Message) (saga.Delivery, error) {
	asked := r.asked[at]
	rt := r.runtime(saga.Delivery{Info: asked.Info, Body: asked.Body})
	rt.Endpoint = "answers"
	out, err := rt.Compose(saga.Answer, m)
	if err == nil {
		r.asked = slices.Delete(r.asked, at, at+1)
	}
	return saga.Delivery{Info: out.Info, Body: out.Body}, err
}

// Advance moves the clock by d and fires the messages that become due, in order, including timeouts that their steps
// set. It joins the errors of failed steps. A failed message fires again in the next Advance, unless the failure was
// permanent. More than 100,000 messages in one Advance fail the test.
func (r *Run) Advance(d time.Duration) error {
	r.t.Helper()
	var errs []error
	r.advance(d, func(h happened) {
		r.note(h)
		if err := h.err(); err != nil {
			errs = append(errs, fmt.Errorf("%v %s: %w", h.in.Info.Intent, h.in.Info.Kind, err))
		}
	})
	return errors.Join(errs...)
}

// Sent returns the messages that the saga has sent, published and answered since the last call, decoded. Timeouts are
// in Pending.
func (r *Run) Sent() []saga.Message {
	r.t.Helper()
	var out []saga.Message
	for _, o := range r.sent {
		m, err := r.codec.message(o)
		if err != nil {
			r.t.Fatalf("sagatest: decode %s, which the saga sent: %v", o.Info.Kind, err)
		}
		out = append(out, m)
	}
	r.sent = nil
	return out
}

// SentAs is Sent with the header, due time and destination of each message. It counts as a call of Sent.
func (r *Run) SentAs() []saga.Outgoing {
	out := r.sent
	r.sent = nil
	return out
}

// Discarded returns "kind: reason" for each message that was consumed without effect since the last call.
func (r *Run) Discarded() []string {
	out := r.discards
	r.discards = nil
	return out
}

// Instance returns the stored instance with this key, even if it has completed and is remembered; ok is false if
// there is no instance.
func (r *Run) Instance(key string) (i saga.Instance, ok bool) {
	r.t.Helper()
	i, ok, err := r.store.Load(Ref{Saga: r.def.Name(), Key: key})
	if err != nil {
		r.t.Fatalf("sagatest: load %s/%s: %v", r.def.Name(), key, err)
	}
	return i, ok
}

// Pending returns the pending timeouts of the instance, or nil if there is no live instance.
func (r *Run) Pending(key string) []saga.Pending {
	r.t.Helper()
	i, _ := r.Instance(key)
	if !i.RememberedUntil().IsZero() {
		return nil
	}
	return i.Pending
}

// Live reports whether there is a live instance with this key.
func (r *Run) Live(key string) bool {
	r.t.Helper()
	i, ok := r.Instance(key)
	return ok && i.RememberedUntil().IsZero()
}

// State returns the instance's state as the database would return it. It fails the test if there is no instance, or
// if S is not the type of the states.
func State[S any](r *Run, key string) S {
	r.t.Helper()
	if asked := reflect.TypeFor[S](); asked != r.def.StateType() {
		r.t.Fatalf("sagatest: state of %s/%s: it is a %v, not a %v", r.def.Name(), key, r.def.StateType(), asked)
	}
	i, ok := r.Instance(key)
	if !ok {
		r.t.Fatalf("sagatest: there is no %s/%s", r.def.Name(), key)
	}
	s, err := saga.StatesOf[S](r.def).Decode(i)
	if err != nil {
		r.t.Fatalf("sagatest: %v", err)
	}
	return s
}

// Given stores an instance as an earlier release would: its state as JSON, and the version of that state. It fails
// the test if the key has an instance. Use it to test an Upcast.
func (r *Run) Given(key string, stateVersion int, state string) {
	r.t.Helper()
	won, err := r.store.Save([]Write{{Op: Start, Instance: saga.Instance{
		ID: r.ids.next(), Saga: r.def.Name(), Key: key, StateVersion: stateVersion, State: []byte(state),
	}}})
	if err != nil || !won[0] {
		r.t.Fatalf("sagatest: given %s/%s: it exists already", r.def.Name(), key)
	}
}
