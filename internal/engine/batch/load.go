package batch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// loader finds the instances that the messages of a batch are for. The next batch reuses its memory.
type loader struct {
	engine    *Engine
	in        *message.Decoder
	instances []*contention.Instance
	holds     contention.Holding

	find  map[contention.Handle]*contention.Instance
	asked []wanted
	refs  []persistence.Ref
	byID  bool // a message names its instance by id

	waits outcome.Waits
}

// wanted is an instance to load, and its first message.
type wanted struct {
	*contention.Instance
	first *message.Message
}

func (l *loader) reset() {
	clear(l.asked)
	clear(l.instances)
	clear(l.find)
	*l = loader{
		engine: l.engine, in: l.in, instances: l.instances[:0], holds: l.holds[:0], find: l.find, asked: l.asked[:0],
		refs: l.refs[:0],
	}
}

// load finds the instances of the batch, with one load for each however many messages it has. It does not ask the
// database for instances that a different worker of this process has.
func (l *loader) load(ctx context.Context) error {
	for _, m := range l.in.Messages {
		if m.Fate != message.FateLeft || m.Call == nil && (m.Consumer == nil || !m.Undecided()) {
			continue
		}
		id := m.Delivery.Info.Instance
		if m.Call != nil {
			id = m.Call.Instance()
		}
		h := contention.Handle{ID: id}
		if id.IsZero() {
			h = contention.Handle{Saga: m.Consumer.Definition.Name(), Key: m.Call.Key()}
		} else {
			l.byID = true
		}
		i := l.find[h]
		if i == nil {
			i = contention.NewInstance(m.Consumer.Definition, h)
			l.find[h] = i
			if l.engine.To.Memory.Hold(&l.holds, h) {
				l.asked = append(l.asked, wanted{i, m})
			} else {
				i.HeldHere()
			}
		}
		if locks(m) {
			i.MustLock()
		}
		m.Join(i)
	}
	if len(l.asked) == 0 {
		l.awaitWorker(ctx)
	}
	if err := l.ask(ctx, l.asked); err != nil {
		return err
	}
	if err := l.waitForHolder(ctx); err != nil {
		return err
	}
	for _, m := range l.in.Messages {
		if i := m.Instance; i != nil && (m.Call == nil || m.Consumer.Definition != i.Def) {
			l.assign(m, i)
		}
	}
	return nil
}

const standardLockAfter = 2

// lockAfter returns the number of lost saves after which an instance is loaded with its lock; a negative number means
// never.
func lockAfter(d *saga.Definition) int { return cmp.Or(d.Options().LockAfter, standardLockAfter) }

// locks reports whether the instance of a message is loaded with its lock: if its saga wants that, or any of the
// sagas that the message may be for.
func locks(m *message.Message) bool {
	pessimistic := func(c *handlers.Consumer) bool { return c.Definition.Options().Store == saga.Pessimistic }
	return pessimistic(m.Consumer) || m.Undecided() && slices.ContainsFunc(m.Consumer.Others, pessimistic)
}

// assign gives a message to the saga that owns the instance which the message names. If that saga does not handle the
// message, the message has no instance here.
func (l *loader) assign(m *message.Message, i *contention.Instance) {
	if i.Left() {
		return // the owner was not looked up
	}
	c := m.Consumer.Of(i.Def)
	if c == nil || i.Absent() {
		c = m.Consumer
		m.Join(contention.NewAbsent(c.Definition, i.Asked))
	}
	l.in.Assign(m, c)
}

// ask loads instances and sorts the results.
func (l *loader) ask(ctx context.Context, asked []wanted) error {
	if len(asked) == 0 {
		return nil
	}
	for _, i := range asked {
		lock := i.Lock || l.engine.To.Memory.MustLock(i.Asked, lockAfter(i.Def))
		l.refs = append(l.refs, persistence.Ref{Saga: i.Asked.Saga, Key: i.Asked.Key, ID: i.Asked.ID, Lock: lock})
	}
	ctx, cancel := context.WithTimeout(ctx, contention.AnswerTimeout)
	defer cancel()
	found, err := l.engine.Sagas.Load(ctx, l.in.Conn, l.refs)
	if err != nil {
		return err
	}
	for n, i := range asked {
		l.classify(i, found[n])
	}
	return nil
}

// classify makes an instance of the batch from the loaded row. A key and an id that name the same instance become one
// before the first step.
func (l *loader) classify(i wanted, f persistence.Found) {
	// an id of another endpoint's saga is not ours to answer for: it has no definition here
	if i.Found(f, l.engine.To.Handlers.Sagas[f.Instance.Saga]) {
		l.unify(i, f)
	}
}

// unify registers an instance under both of its names, key and id. In a batch where every message names its instance
// by key it has nothing to do.
func (l *loader) unify(i wanted, f persistence.Found) {
	if !l.byID {
		l.open(i, f)
		return
	}
	byKey, byID := contention.Handle{Saga: f.Instance.Saga, Key: f.Instance.Key}, contention.Handle{ID: f.Instance.ID}
	for _, h := range [2]contention.Handle{byKey, byID} {
		other := l.find[h]
		switch {
		case other == nil:
			l.find[h] = i.Instance
		case other != i.Instance && other.Session != nil: // the other name was settled first
			l.replace(i.Instance, other)
			return
		}
		if !l.engine.To.Memory.Hold(&l.holds, h) {
			i.HeldHere()
			return
		}
	}
	l.open(i, f)
}

// replace moves the messages of i to the instance with the same id or key.
func (l *loader) replace(i, twin *contention.Instance) {
	for _, m := range l.in.Messages {
		if m.Instance == i {
			m.Join(twin)
		}
	}
	l.find[i.Asked] = twin
}

func (l *loader) open(i wanted, f persistence.Found) {
	l.instances = append(l.instances, i.Instance)
	if i.Fault != nil {
		return
	}
	l.in.Enter(i.first, time.Now()) // the saga's Upcast, or its state, may end the goroutine, or not return
	session, err := i.Def.Open(f.Instance)
	l.in.Hand.Return()
	i.Opened(session, err)
}

// begin makes the instance that a message may start. It is stored only if a step succeeds.
func (l *loader) begin(i *contention.Instance, m *message.Message) bool {
	id := l.engine.To.NewID()
	session, err := i.Def.Open(saga.Instance{ID: id, New: true, Saga: i.Def.Name(), Key: m.Call.Key()})
	if err != nil {
		l.in.Fail(m, err)
		return false
	}
	i.Begin(id, session)
	l.instances = append(l.instances, i)
	return true
}

const mostHolderWait = 50 * time.Millisecond

// awaitWorker waits if the whole batch is for instances that a different worker of this process has: its messages are
// ready to step as soon as that worker has committed. One worker waits so. On a hot instance the two take turns: one
// takes and decodes while the other steps and commits. The waiting worker holds no instance.
func (l *loader) awaitWorker(ctx context.Context) {
	var first *contention.Instance
	for _, m := range l.in.Messages {
		switch {
		case m.Fate != message.FateLeft || m.Instance == nil:
			return
		case first == nil:
			first = m.Instance
		}
	}
	done, ok := l.engine.To.Memory.WaitFor(first.Asked)
	if !ok {
		return
	}
	defer done()
	begun := time.Now()
	ready := l.engine.pump.untilEnded(ctx, mostHolderWait,
		func() (ready bool, again time.Duration) {
			ready = l.engine.To.Memory.Hold(&l.holds, first.Asked)
			return ready, l.engine.To.Memory.WaitOf(first.Asked)
		})
	turn := outcome.HolderWait{Of: first.Def, Took: time.Since(begun), Failed: !ready}
	l.waits = outcome.Waits{Turn: turn, Holder: l.waits.Holder}
	if !ready {
		return
	}
	for _, m := range l.in.Messages {
		if i := m.Instance; i.BusyHere() && l.engine.To.Memory.Hold(&l.holds, i.Asked) {
			i.Freed()
			l.asked = append(l.asked, wanted{i, m})
		}
	}
}

// waitForHolder waits if the whole batch is for instances that other processes hold: one worker of this process waits
// for one of them; otherwise all workers would take and release the messages again and again. It holds no instance,
// so it cannot be part of a deadlock.
func (l *loader) waitForHolder(ctx context.Context) error {
	var first wanted
	for _, m := range l.in.Messages {
		switch {
		case m.Fate != message.FateLeft || m.Instance == nil:
			return nil
		case !m.Instance.Left():
			return nil
		case first.Instance == nil && m.Instance.BusyThere():
			first = wanted{m.Instance, m}
		}
	}
	if first.Instance == nil {
		return nil
	}
	done, ok := l.engine.To.Memory.WaitFor(contention.Handle{ID: first.ID})
	if !ok {
		return nil
	}
	defer done()
	wait := max(mostHolderWait, first.Def.Options().LockWait)
	if _, err := l.in.Conn.Exec(ctx, queue.LockTimeout(), fmt.Sprint(wait.Milliseconds())); err != nil {
		return fmt.Errorf("wait for a saga instance: %w", err)
	}
	begun := time.Now()
	err := l.engine.Sagas.Wait(ctx, l.in.Conn, first.ID)
	held := outcome.HolderWait{Of: first.Def, Took: time.Since(begun), Failed: err != nil}
	l.waits = outcome.Waits{Turn: l.waits.Turn, Holder: held}
	switch {
	case pgerr.ClassOf(err) == pgerr.Busy:
		return nil // the timeout has failed the transaction, but no message has its instance: there is nothing to write
	case err != nil:
		return err
	}
	return l.askAgain(ctx, first)
}

// askAgain loads the one instance that the batch waited for, whose lock it now holds.
func (l *loader) askAgain(ctx context.Context, i wanted) error {
	ref := persistence.Ref{Saga: i.Asked.Saga, Key: i.Asked.Key, ID: i.Asked.ID, Lock: true}
	found, err := l.engine.Sagas.Load(ctx, l.in.Conn, []persistence.Ref{ref})
	if err != nil {
		return err
	}
	l.classify(i, found[0])
	return nil
}

var _ persistence.Sender = (*pgx.Conn)(nil)
