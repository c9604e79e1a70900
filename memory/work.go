package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/aftercommit"
	"github.com/edda-go/edda/internal/dedup"
	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/recall"
	"github.com/edda-go/edda/internal/runs"
	"github.com/edda-go/edda/internal/step"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
)

// work is one message in the hands of a worker.
type work struct {
	of  *Endpoint
	row *row
	m   delivery.Message
	d   *delivery.Decoder

	handle   recall.Handle // of its instance; zero: it is for none
	lane     string        // its key; "" is none
	released bool          // it goes back as it was
	awaits   bool          // its handler has left it, so the queue waits
}

// prepare decodes a message, and makes its instance or its key the worker's. It returns nil if another message has
// that; the message then waits for its end.
func (e *Endpoint) prepare(ctx context.Context, r *row) *work {
	b := e.bus
	w := &work{of: e, row: r, m: delivery.Message{Row: r.Row}}
	w.m.Taken.Attempt, w.m.Taken.FirstFailed = r.Attempt, r.FirstFailed
	w.d = delivery.NewDecoder(e.recipient, b.begun())
	w.d.Now = b.Now()
	w.d.Messages = []*delivery.Message{&w.m}
	w.d.DecodeClaimed(ctx)
	w.d.Runtime.Admit = w.admit
	w.assign()
	w.readKey()
	if b.enter(w) {
		return w
	}
	return nil
}

// begun is when the handling of a message begins, zero while time stands still.
func (w *world) begun() time.Time {
	if !w.real {
		return time.Time{}
	}
	return time.Now()
}

// admit returns an error if a message has no destination.
func (w *work) admit(out *saga.Outgoing) error {
	_, err := w.of.bus.targets(out, w.of.box)
	return err
}

// assign finds the instance that a message is for.
func (w *work) assign() {
	m := &w.m
	if m.Fate != delivery.FateLeft || m.Consumer == nil || m.Consumer.Definition == nil {
		return
	}
	named, known := saga.Instance{}, false
	if id := m.Delivery.Info.Instance; m.Undecided() || m.Call != nil && !m.Call.Instance().IsZero() {
		w.of.bus.mu.Lock()
		named, known = w.of.bus.sagas.byID(id)
		w.of.bus.mu.Unlock()
	}
	if m.Undecided() {
		if c := m.Consumer.Of(w.of.handlers.Sagas[named.Saga]); known && c != nil {
			m.Consumer = c
		}
		w.d.PrepareCall(m)
	}
	switch {
	case m.Call == nil: // it cannot be decoded
	case known && w.of.handlers.Sagas[named.Saga] != nil:
		w.handle = recall.Handle{Saga: named.Saga, Key: named.Key}
	case !m.Call.Instance().IsZero():
		w.handle = recall.Handle{ID: m.Call.Instance()}
	default:
		w.handle = recall.Handle{Saga: m.Consumer.Definition.Name(), Key: m.Call.Key()}
	}
}

// readKey reads the key of a message of an Ordered endpoint.
func (w *work) readKey() {
	m := &w.m
	if w.of.options.Ordered == bus.Unordered || m.Fate != delivery.FateLeft || m.Consumer == nil {
		return
	}
	key, err := m.KeyOf(w.d.To.Codec)
	if err != nil {
		w.d.Fail(m, saga.Permanent(fmt.Errorf("key of %s: %w", m.Kind, err)))
		return
	}
	w.lane = key
}

// enter makes the instance or the key of a message its own. If another message has it, the row waits for that.
func (b *Bus) enter(w *work) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := w.row
	if r.owns { // it was kept for it
		return true
	}
	r.handle, r.lane = w.handle, w.lane
	holds, free := b.holdOf(r)
	switch {
	case free:
		return true
	case holds != nil:
		holds.waiting = append(holds.waiting, r)
		r.in.inHand--
		r.in.waiting++
		b.change()
		return false
	}
	b.setHold(r, &hold{})
	return true
}

// holdOf returns the hold on the instance or the key of a row, nil if there is none. free says that the row needs none.
func (b *Bus) holdOf(r *row) (h *hold, free bool) {
	switch {
	case r.lane != "":
		return r.in.lanes[r.lane], false
	case r.handle != recall.Handle{}:
		return b.held[r.handle], false
	}
	return nil, true
}

// setHold makes r the owner of h; nil gives the instance or the key back.
func (b *Bus) setHold(r *row, h *hold) {
	switch r.owns = h != nil; {
	case r.lane != "" && h == nil:
		delete(r.in.lanes, r.lane)
	case r.lane != "":
		r.in.lanes[r.lane] = h
	case h == nil:
		delete(b.held, r.handle)
	default:
		b.held[r.handle] = h
	}
}

// leave gives back what the message has. The first of those that wait for it in the same queue is the next owner, so
// that none that is taken meanwhile goes before it.
func (b *Bus) leave(w *work) {
	r := w.row
	if !r.owns || w.of.options.Ordered == bus.Strict && w.m.Fate == delivery.FateAgain {
		return // or those behind it wait for its retry
	}
	h, _ := b.holdOf(r)
	b.setHold(r, nil)
	var next *row
	for _, other := range h.waiting {
		if other.in == r.in && r.in.running && (next == nil || other.before(next)) {
			next = other
		}
	}
	var behind []*row
	for _, other := range h.waiting {
		if other == next || other.in != r.in {
			other.in.waiting--
			other.in.push(other)
			continue
		}
		behind = append(behind, other)
	}
	if next != nil {
		b.setHold(next, &hold{waiting: behind})
	}
}

// step calls the handler of the message and decides its fate.
func (w *work) step(ctx context.Context) {
	m := &w.m
	if m.Firing.Emitted {
		m.FinishRun(w.of.bus.checkRun(m.Delivery.Info.Fire))
	}
	if m.Fate != delivery.FateLeft || m.Consumer == nil {
		return
	}
	limited, end := context.WithTimeout(ctx, w.of.options.StepTimeout)
	defer end()
	begun := time.Now()
	out := w.call(limited)
	m.Step.Took = time.Since(begun)
	switch {
	case out == nil:
	case out.Err != nil && ctx.Err() != nil: // the drain has cancelled it, which says nothing about the message
		w.released = true
	default:
		w.d.Decide(m, *out)
	}
}

// call returns the outcome of the handler, nil if the fate of the message is decided otherwise.
func (w *work) call(ctx context.Context) *saga.Outcome {
	m := &w.m
	of := handlers.Call{Runtime: &w.d.Runtime, Delivery: &m.Delivery}
	switch {
	case m.Consumer.Leased != nil:
		out, _ := step.Call(ctx, w.d, m.Consumer.Leased, of) // the error is in the outcome
		return &out
	case m.Consumer.Raw != nil:
		own := m.Delivery
		own.Body = bytes.Clone(own.Body)
		of.Delivery = &own
		out, err := step.Call(ctx, w.d, m.Consumer.Raw, of)
		if errors.Is(err, step.ErrLeave) {
			w.released, w.awaits = true, true
			return nil
		}
		return &out
	}
	return w.stepSaga(ctx)
}

// stepSaga steps the message on its instance, or decides what its absence means.
func (w *work) stepSaga(ctx context.Context) *saga.Outcome {
	m, def := &w.m, w.m.Consumer.Definition
	m.Instance = &delivery.Instance{Def: def, Asked: w.handle, Status: delivery.Absent, Write: -1}
	stored, there := w.stored()
	there = there && stored.Saga == def.Name()
	if !there {
		if !m.Call.MayStart() {
			step.Missing(ctx, w.d, m)
			return nil
		}
		stored = saga.Instance{ID: newID(), New: true, Saga: def.Name(), Key: m.Call.Key()}
	}
	session, err := def.Open(stored)
	switch {
	case errors.Is(err, saga.ErrNewerState):
		w.d.AwaitNewerProgram(m, delivery.NewerWait, err)
		return nil
	case err != nil:
		w.d.Fail(m, err)
		return nil
	}
	i := m.Instance
	i.Status, i.Session, i.ID, i.Version, i.Stepped = delivery.Ours, session, stored.ID, stored.Version, true
	out := step.Saga(ctx, w.d, m)
	if out.Missing {
		step.SettleMissing(ctx, w.d, m, "instance has completed")
		return nil
	}
	i.Ended = out.Completed
	return &out
}

func (w *work) stored() (saga.Instance, bool) {
	w.of.bus.mu.Lock()
	defer w.of.bus.mu.Unlock()
	if w.handle.ID.IsZero() {
		return w.of.bus.sagas.byKey(w.handle.Saga, w.handle.Key)
	}
	return w.of.bus.sagas.byID(w.handle.ID)
}

// end makes the fate of the message visible, all at once, and then logs it and emits its events.
func (w *work) end() {
	b := w.of.bus
	defer func() { // an idle bus has emitted its events
		b.locked(func() { w.of.box.inHand--; b.change() })
	}()
	b.mu.Lock()
	targets, err := w.resolve()
	if err != nil {
		b.mu.Unlock() // the policy is the user's, and may call the bus
		w.m.Leave()
		w.d.Fail(&w.m, saga.Permanent(err))
		b.mu.Lock()
	}
	w.commit(targets)
	b.leave(w)
	b.change()
	b.mu.Unlock()
	if w.released {
		return
	}
	if w.m.Fate == delivery.FateDone {
		w.of.handled.Add(1)
	}
	done := &delivery.Effects{In: w.d}
	aftercommit.Log(context.Background(), done)
	aftercommit.Emit(done, b.emit)
	if w.d.Pauses() {
		b.log.Warn("edda: endpoint is paused", "endpoint", w.of.name, "reason", w.m.Reason)
		b.emit(bus.Paused{Endpoint: w.of.name, Reason: w.m.Reason})
	}
	w.of.recipient.Memory.Forget(w.d.Gone)
}

// resolve finds the queues of what the handler sends. An error says that a queue is not there, or that an id which the
// handler chose is taken. If the run of the message is over, the message is discarded.
func (w *work) resolve() (targets [][]*queue.Queue, err error) {
	b, m := w.of.bus, &w.m
	if m.Fate != delivery.FateDone {
		return nil, nil
	}
	if m.Firing.Run != nil && b.answerOf(m.Firing.Run) != runs.Current {
		m.FinishRun(runs.Over)
		return nil, nil
	}
	for n := range m.Step.Out {
		out := &m.Step.Out[n]
		to, err := b.targets(out, w.of.box)
		if err == nil && out.GivenID {
			switch b.claim(out) {
			case dedup.Duplicate:
				to = nil
			case dedup.Conflict:
				err = fmt.Errorf("send with id %s: %w", out.Info.ID, dedup.ErrConflict)
			}
		}
		if err != nil {
			w.unclaim(m.Step.Out[:n], targets)
			return nil, err
		}
		targets = append(targets, to)
	}
	return targets, nil
}

// unclaim gives back the ids of messages that are not sent after all.
func (w *work) unclaim(out []saga.Outgoing, targets [][]*queue.Queue) {
	for n := range out {
		if out[n].GivenID && targets[n] != nil {
			delete(w.of.bus.given, out[n].Info.ID)
		}
	}
}

// commit changes queues, instances, records and runs. targets are the queues of what is sent.
func (w *work) commit(targets [][]*queue.Queue) {
	b, m := w.of.bus, &w.m
	switch {
	case w.released:
		w.of.box.push(w.row)
		if w.awaits {
			w.of.box.notBefore = b.now().Add(w.of.options.Poll)
		}
		return
	case m.Fate == delivery.FateAgain:
		w.row.Row = m.Row
		w.row.Due = b.now().Add(m.Delay)
		w.of.box.push(w.row)
	default:
		delete(w.of.box.timers, m.ID)
	}
	if m.Fate == delivery.FateDone {
		w.save()
		for n := range m.Step.Out {
			b.deliver(&m.Step.Out[n], targets[n])
		}
		for _, c := range m.Step.Gone {
			w.of.box.cancel(c.ID)
		}
	}
	w.record()
	m.RunEnds(b.endRun)
	if w.d.Pauses() {
		w.of.box.paused, w.of.box.reason = true, m.Reason
	}
}

// save stores the instance, or removes it when it has completed.
func (w *work) save() {
	i := w.m.Instance
	if i == nil || i.Session == nil || !i.Session.Live() {
		return
	}
	now, err := i.Session.Instance()
	switch {
	case err != nil:
	case i.Session.Completed():
		w.of.bus.sagas.remove(now)
	case i.Session.Changed():
		w.of.bus.sagas.save(now)
	}
}

// record keeps the dead letter, or why the message was discarded.
func (w *work) record() {
	b := w.of.bus
	letters, discarded := (&delivery.Effects{In: w.d}).Records()
	for _, l := range letters {
		l.Died, l.Group = b.now(), deadletter.GroupOf(&l)
		b.letters.add(func(number int64) deadletter.Letter { l.Number = number; return l })
	}
	for _, d := range discarded {
		d.At = b.now()
		b.discarded.add(func(number int64) deadletter.Discarded { d.Number = number; return d })
	}
}
