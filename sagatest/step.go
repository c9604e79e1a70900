package sagatest

import (
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
)

// happened is the result of one delivery, for the Run and for transcripts.
type happened struct {
	in     saga.Delivery
	before saga.Instance // zero: there was no instance
	after  saga.Instance // zero: there is no instance
	op     Op
	saved  bool
	out    saga.Outcome
	none   bool // there is no instance, and the message starts no instance
	policy saga.Missing
}

// err returns the failure of the delivery for the test.
func (h happened) err() error {
	if h.none && h.out.Err == nil && h.policy != saga.MissingDiscard {
		return fmt.Errorf("%s: %w", h.in.Info.Kind, ErrMissing)
	}
	return h.out.Err
}

// step handles one delivery as the bus does: prepare, load, open, step, save.
func (r *Run) step(in saga.Delivery) (h happened) {
	h.in = in
	call, err := r.def.Prepare(in, r.codec)
	if err != nil {
		h.out.Err = err
		return h
	}
	i, ok, err := r.store.Load(Ref{Saga: r.def.Name(), Key: call.Key(), ID: call.Instance()})
	switch {
	case err != nil:
		h.out.Err = err
		return h
	case ok:
		h.before = i
	case call.MayStart():
		i = saga.Instance{ID: r.ids.next(), New: true, Saga: r.def.Name(), Key: call.Key()}
	default:
		return r.missing(h, call, "no instance")
	}
	session, err := r.def.Open(i)
	if err != nil {
		h.out.Err = err
		return h
	}
	h.out = session.Step(r.t.Context(), r.runtime(in), call)
	if len(h.out.Unknown) > 0 {
		r.t.Logf("sagatest: the state of %s/%s has the fields %q, which %v does not have: if they were renamed, raise "+
			"StateVersion and give an Upcast", i.Saga, i.Key, h.out.Unknown, r.def.StateType())
	}
	if h.out.Missing {
		return r.missing(h, call, "instance has completed")
	}
	if h.out.Err == nil && h.out.Discard == "" {
		r.save(&h, session)
	}
	return h
}

// missing decides about a message without an instance. reason is the reason for discarding it.
func (r *Run) missing(h happened, call *saga.Call, reason string) happened {
	h.none, h.policy = true, call.Missing()
	out, ok := call.StepMissing(r.t.Context(), r.runtime(h.in))
	switch {
	case ok:
		h.none, h.out = false, out
		r.dispatch(out)
	case h.in.Info.Intent == saga.Timer:
		h.out.Discard = "instance is gone"
	case h.policy == saga.MissingDiscard:
		h.out.Discard = reason
	}
	return h
}

func (r *Run) save(h *happened, s *saga.Session) {
	i, err := s.Instance()
	if err != nil {
		r.t.Fatalf("sagatest: %v", err)
	}
	h.op, h.after = opOf(h.before.ID.IsZero(), s), i
	won, err := r.store.Save([]Write{{Op: h.op, Instance: i}})
	if err != nil || !won[0] {
		r.t.Fatalf("sagatest: save %s/%s: won %v: %v", i.Saga, i.Key, won, err)
	}
	if h.op == Update || h.op == Start {
		h.after.Version++
	}
	h.saved = true
	r.dispatch(h.out)
}

func opOf(started bool, s *saga.Session) Op {
	switch {
	case started && s.Completed():
		return StartAndComplete
	case started:
		return Start
	case s.Completed():
		return Complete
	case s.Changed():
		return Update
	}
	return Check
}

// dispatch queues timeouts for Advance and other messages for Sent. Cancelled timeouts stay in the queue, and are
// discarded when they are due.
func (r *Run) dispatch(out saga.Outcome) {
	for _, o := range out.Out {
		if o.Info.Intent == saga.Timer {
			r.later.push(saga.Delivery{Info: o.Info, Body: o.Body})
			continue
		}
		r.sent = append(r.sent, o)
		r.asked = append(r.asked, o)
	}
}

func (r *Run) runtime(in saga.Delivery) *saga.Runtime {
	return &saga.Runtime{
		In: in, Now: r.now, Clock: func() time.Time { return r.now },
		NewID: r.ids.next, Codec: r.codec, Endpoint: r.def.Name(),
	}
}

// most bounds one Advance, because a timeout that sets itself again at once would never end.
const most = 100_000

// advance moves the clock to each due time in turn, so that a timeout that a timeout sets also fires.
func (r *Run) advance(d time.Duration, each func(happened)) {
	end := r.now.Add(max(d, 0))
	var failed []saga.Delivery
	for n := 0; ; n++ {
		in, ok := r.later.pop(end)
		if !ok {
			break
		}
		if n == most {
			r.t.Fatalf("sagatest: %d messages fell due in one Advance; the last is %s", most, in.Info.Kind)
		}
		if in.Info.Due.After(r.now) {
			r.now = in.Info.Due
		}
		in.Info.Attempt++
		h := r.step(in)
		each(h)
		var permanent *saga.PermanentError
		if err := h.err(); err != nil && !errors.As(err, &permanent) {
			failed = append(failed, in)
		}
	}
	r.now = end
	for _, in := range failed {
		r.later.push(in)
	}
}
