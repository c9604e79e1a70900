package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// work is one message that a worker handles.
type work struct {
	of  *Endpoint
	row *row
	m   message.Message
	d   *message.Decoder

	handle   contention.Handle // of its instance; zero if it is for no instance
	lane     string            // its key; "" if it has no key
	released bool              // it goes back to the queue unchanged
	pauses   bool              // its handler has left it, so the queue pauses for a Poll
}

// prepare decodes a message, and acquires its instance or its key. It returns nil if a different message has that; the
// message then waits.
func (e *Endpoint) prepare(ctx context.Context, r *row) *work {
	b := e.bus
	w := &work{of: e, row: r, m: message.Message{Row: copyOf(&r.Row, r.Due, bytes.Clone(r.Body))}} // for the codec
	w.d = &message.Decoder{
		Tally: message.Tally{To: e.recipient, DBTime: message.DBTime{Begun: b.begun(), Now: b.Now()}}, Admits: w.admit,
	}
	w.d.Add(&w.m)
	w.d.DecodeClaimed(ctx, func(int) { w.assign(); w.readKey() })
	if b.enter(w) {
		return w
	}
	return nil
}

// copyOf returns a copy of a row with a due time and a body of its own, which a codec may keep or change.
func copyOf(r *queue.Row, due time.Time, body []byte) queue.Row {
	return queue.Row{
		Due: due, ID: r.ID, Sent: r.Sent, FirstFailed: r.FirstFailed, Attempt: r.Attempt, Conflict: r.Conflict,
		Kind: r.Kind, Header: r.Header, Body: body,
	}
}

// begun returns the time when the handling of a message begins, zero if the bus has its own clock.
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
	if m.Fate != message.FateLeft || m.Consumer == nil || m.Consumer.Definition == nil {
		return
	}
	named, known := saga.Instance{}, false
	if id := m.Delivery.Info.Instance; m.Undecided() || m.Call != nil && !m.Call.Instance().IsZero() {
		w.of.bus.mu.Lock()
		named, known = w.of.bus.sagas.byID(id)
		w.of.bus.mu.Unlock()
	}
	if m.Undecided() {
		c := m.Consumer
		if of := c.Of(w.of.handlers.Sagas[named.Saga]); known && of != nil {
			c = of
		}
		w.d.Assign(m, c)
	}
	switch {
	case m.Call == nil: // it could not be decoded
	case known && w.of.handlers.Sagas[named.Saga] != nil:
		w.handle = contention.Handle{Saga: named.Saga, Key: named.Key}
	case !m.Call.Instance().IsZero():
		w.handle = contention.Handle{ID: m.Call.Instance()}
	default:
		w.handle = contention.Handle{Saga: m.Consumer.Definition.Name(), Key: m.Call.Key()}
	}
}

// readKey reads the key of a message of an Ordered endpoint.
func (w *work) readKey() {
	m := &w.m
	if w.of.options.Ordered == bus.Unordered || m.Fate != message.FateLeft || m.Consumer == nil {
		return
	}
	if key := w.d.KeyOf(m); m.Fate == message.FateLeft {
		w.lane = key
	}
}

// around handles the message inside the user's hook Around.
func (w *work) around(ctx context.Context) {
	b := w.of.bus
	defer func() { // when the bus is idle, its events are emitted and its hooks have returned
		b.locked(func() { w.of.box.inHand--; b.change() })
	}()
	hook := b.hooks.Around
	if hook == nil {
		w.process(ctx)
		return
	}
	t := &event.Transaction{Endpoint: w.of.name, Work: event.Batch}
	hook.Do(ctx, t, func(ctx context.Context) {
		w.process(ctx)
		t.Taken, t.Messages = 1, w.settled
	})
}

// settled returns the fates of the attempts.
func (w *work) settled() []event.Settled {
	all := outcome.Settled(w.d, nil)
	if w.released {
		all[len(all)-1].Fate = event.FateLeft
	}
	return all
}

// process handles the message, and makes its fate visible.
func (w *work) process(ctx context.Context) {
	ended := w.of.calls.Do(func(h *run.Hand) { w.d.CallBy(h); w.step(ctx) })
	switch {
	case ended == nil || w.m.Fate != message.FateLeft:
	case ctx.Err() != nil:
		w.released = true
	case errors.Is(ended, run.ErrLeft):
		w.d.Fail(&w.m, handlers.ErrLeft)
	default:
		w.d.Fail(&w.m, handlers.ErrExited)
	}
	w.end(ctx)
}

// step calls the handler of the message and decides its fate.
func (w *work) step(ctx context.Context) {
	m := &w.m
	if m.Firing.Emitted {
		m.FinishRun(w.of.bus.checkRun(m.Delivery.Info.Firing))
	}
	if m.Fate != message.FateLeft || m.Consumer == nil {
		return
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.of.bus.follow(m.Firing.Run, cancel)()
	limited, end := context.WithTimeout(work, w.of.options.StepTimeout)
	defer end()
	begun := time.Now()
	w.d.Enter(m, begun)
	defer w.d.Hand.Leave()
	out := w.call(limited)
	m.Returned(time.Since(begun))
	switch {
	case out == nil:
	case out.Err != nil && ctx.Err() != nil: // the drain cancelled it, so the message is not to blame
		w.released = true
	default:
		w.d.Decide(m, *out)
	}
}

// call returns the outcome of the handler, nil if the fate of the message is already decided.
func (w *work) call(ctx context.Context) *saga.Outcome {
	m := &w.m
	of := handlers.Call{Runtime: &w.d.Runtime, Delivery: &m.Delivery, Handlers: w.of.handlers}
	switch {
	case m.Consumer.Leased != nil:
		out, _ := w.d.Call(ctx, m.Consumer.Leased, of) // the outcome has the error
		return &out
	case m.Consumer.Raw != nil:
		own := saga.Delivery{Info: m.Delivery.Info, Body: bytes.Clone(m.Delivery.Body)}
		out, err := w.d.Call(ctx, m.Consumer.Raw, handlers.Call{Runtime: &w.d.Runtime, Delivery: &own,
			Handlers: w.of.handlers})
		if errors.Is(err, message.ErrLeave) {
			w.released, w.pauses = true, true
			return nil
		}
		return &out
	}
	return w.stepSaga(ctx)
}

// stepSaga steps the message on its instance, or decides the fate of a message without one.
func (w *work) stepSaga(ctx context.Context) *saga.Outcome {
	m, def := &w.m, w.m.Consumer.Definition
	m.Join(contention.NewAbsent(def, w.handle))
	stored, there := w.stored()
	named := m.Call.Instance()
	there = there && stored.Saga == def.Name() && (named.IsZero() || named == stored.ID)
	if !there {
		if !m.Call.MayStart() {
			w.d.Missing(ctx, m)
			return nil
		}
		stored = saga.Instance{ID: newID(), New: true, Saga: def.Name(), Key: m.Call.Key()}
	}
	w.d.Enter(m, time.Now())
	session, err := def.Open(stored)
	w.d.Hand.Return()
	switch {
	case errors.Is(err, saga.ErrNewerState):
		w.d.AwaitNewerProgram(m, err)
		return nil
	case err != nil:
		w.d.Fail(m, err)
		return nil
	}
	m.Instance.Found(persistence.Found{Status: persistence.Loaded, Instance: stored}, def)
	m.Instance.Opened(session, nil)
	w.d.Enter(m, time.Now())
	out := w.d.Step(ctx, m)
	if out.Missing {
		w.d.SettleMissing(ctx, m, "instance has completed")
		return nil
	}
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
func (w *work) end(ctx context.Context) {
	b := w.of.bus
	for {
		f := w.facts()
		again, err := b.commit(w, f)
		if err != nil {
			w.m.Leave()
			w.d.Fail(&w.m, saga.Permanent(err))
		}
		if !again {
			break
		}
	}
	if !w.released {
		w.tell(ctx)
	}
	w.of.recipient.Memory.Forget(w.d.Gone)
}

// facts are the records that follow from the fate of a message. Their texts come from the errors of users, so they are
// made before the mutex is locked.
type facts struct {
	letters   []recoverability.Letter
	discarded []recoverability.Discarded
	ends      []runEnd
}

type runEnd struct {
	of            *saga.Firing
	outcome, text string
}

func (w *work) facts() (f facts) {
	f.letters, f.discarded = (&outcome.Effects{In: w.d}).Records()
	if m := &w.m; m.Firing.Run != nil {
		if outcome, text := m.RunEnd(); outcome != "" {
			f.ends = append(f.ends, runEnd{m.Firing.Run, outcome, text})
		}
	}
	if of := w.m.Instance.Firing(); of != nil && w.m.Fate == message.FateDone && w.m.Instance.Ended {
		f.ends = append(f.ends, runEnd{of, runs.Succeeded, ""})
	}
	return f
}

// commit changes queues, instances, records and runs. again is true if the fate of the message had to change first,
// because its run is over. The error is why the message cannot be done: a queue does not exist, or an id that its
// handler chose is taken.
func (b *Bus) commit(w *work, f facts) (again bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &w.m
	if !w.released && m.Firing.Run != nil && b.answerOf(m.Firing.Run) != runs.Current {
		m.FinishRun(runs.Over)
		return true, nil
	}
	targets, err := w.resolve()
	if err != nil {
		return true, err
	}
	w.write(targets, f)
	b.leave(w)
	b.change()
	return false, nil
}

// tell logs the fate of the message, and emits its events.
func (w *work) tell(ctx context.Context) {
	b, m := w.of.bus, &w.m
	if m.Fate == message.FateDone || m.Fate == message.FateDropped && m.Err == nil {
		w.of.handled.Add(1)
	}
	done := &outcome.Effects{In: w.d}
	done.Log(ctx)
	handled := 0
	if m.Fate == message.FateDone {
		handled = 1
	}
	done.Emit(&b.hooks.Receivers,
		event.BatchDone{Endpoint: w.of.name, Taken: 1, Handled: handled, Took: m.Step.Took})
	if w.d.Pauses() {
		b.tellPaused(w.of.name, m.Reason)
	}
}

// resolve finds the queues of the messages that the handler has sent, if its message is done.
func (w *work) resolve() (targets [][]*queue.Queue, err error) {
	b, m := w.of.bus, &w.m
	var claimed []saga.ID
	for n := range m.Step.Out {
		out := &m.Step.Out[n]
		to, err := b.targets(out, w.of.box)
		if err == nil && out.GivenID {
			switch b.claim(out) {
			case dedup.Fresh:
				claimed = append(claimed, out.Info.ID)
			case dedup.Duplicate:
				to = nil
			case dedup.Conflict:
				err = fmt.Errorf("send with id %s: %w", out.Info.ID, dedup.ErrConflict)
			}
		}
		if err != nil {
			for _, id := range claimed { // messages that are not sent after all use no id
				delete(b.given, id)
			}
			return nil, err
		}
		targets = append(targets, to)
	}
	return targets, nil
}

// write carries out the fate of the message. targets are the queues of the sent messages.
func (w *work) write(targets [][]*queue.Queue, f facts) {
	b, m := w.of.bus, &w.m
	switch {
	case w.released:
		w.of.box.put(w.row)
		if w.pauses {
			w.of.box.notBefore = b.now().Add(w.of.options.Poll)
		}
		return
	case m.Fate == message.FateAgain:
		w.row.Row = copyOf(&m.Row, b.now().Add(m.Delay), w.row.Body)
		w.of.box.push(w.row)
	default:
		delete(w.of.box.timers, m.ID)
	}
	if m.Fate == message.FateDone {
		w.save()
		for n := range m.Step.Out {
			b.deliver(&m.Step.Out[n], targets[n])
		}
		for _, c := range m.Step.Gone {
			b.cancel(w.of.box, c.ID)
		}
	}
	b.record(f)
	for _, e := range f.ends {
		b.endRun(e.of, e.outcome, e.text)
	}
	if w.d.Pauses() {
		w.of.box.paused, w.of.box.reason = true, m.Reason
	}
}

// save stores the instance, or removes it if it has completed.
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

// record stores dead letters and discarded messages.
func (w *world) record(f facts) {
	for _, l := range f.letters {
		l.Died, l.Group = w.now(), deadletter.GroupOf(&l)
		w.letters.add(func(number int64) recoverability.Letter { l.Number = number; return l })
	}
	for _, d := range f.discarded {
		d.At = w.now()
		w.discarded.add(func(number int64) recoverability.Discarded { d.Number = number; return d })
	}
}
