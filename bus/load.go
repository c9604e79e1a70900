package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// load finds the instances of the batch, one load for each however many messages it has. Those in the hands
// of another worker of this process are not even asked for.
func (b *batch) load(ctx context.Context) error {
	for _, m := range b.messages {
		if m.fate != fateLeft || m.call == nil && (m.consumer == nil || !m.undecided()) {
			continue
		}
		h := handle{id: m.delivery.Info.Instance}
		if m.call != nil {
			h.id = m.call.Instance()
		}
		if h.id.IsZero() {
			h = handle{saga: m.consumer.def.Name(), key: m.call.Key()}
		} else {
			b.byID = true
		}
		i := b.find[h]
		if i == nil {
			i = &instance{def: m.consumer.def, asked: h, write: -1}
			b.find[h] = i
			if b.ep.memory.hold(b, h) {
				b.asked = append(b.asked, i)
			} else {
				i.status = busyHere
			}
		}
		m.instance = i
	}
	if len(b.asked) == 0 {
		b.awaitWorker(ctx)
	}
	if err := b.ask(ctx, b.asked); err != nil {
		return err
	}
	if err := b.waitForHolder(ctx); err != nil {
		return err
	}
	for _, m := range b.messages {
		if i := m.instance; i != nil && (m.call == nil || m.consumer.def != i.def) {
			b.assign(m, i)
		}
	}
	return nil
}

// assign gives a message to the saga that has the instance which it names. An instance of a saga that does not handle
// the message is none of its own.
func (b *batch) assign(m *message, i *instance) {
	if i.status == busyHere || i.status == busyThere || i.status == unknown {
		return // nobody has looked whose it is
	}
	c := m.consumer.of(i.def)
	if c == nil || i.status == absent {
		c = m.consumer
		m.instance = &instance{def: c.def, asked: i.asked, status: absent, write: -1}
	}
	if m.consumer = c; m.call == nil || m.call.Definition() != c.def {
		b.prepareCall(m)
	}
}

// ask loads instances and sorts out what came back.
func (b *batch) ask(ctx context.Context, asked []*instance) error {
	if len(asked) == 0 {
		return nil
	}
	for _, i := range asked {
		lock := i.def.Store() == saga.Pessimistic || b.ep.memory.mustLock(i.asked) || b.ep.handlers.shared &&
			!i.asked.id.IsZero()
		b.refs = append(b.refs, persistence.Ref{Saga: i.asked.saga, Key: i.asked.key, ID: i.asked.id, Lock: lock})
	}
	found, err := b.ep.bus.sagas.Load(ctx, b.conn, b.refs)
	if err != nil {
		return err
	}
	for n, i := range asked {
		b.settle(i, found[n])
	}
	return nil
}

// settle turns what was found into an instance of the batch. A key and an id that name the same instance
// become one before the first step.
func (b *batch) settle(i *instance, f persistence.Found) {
	switch f.Status {
	case persistence.Absent:
		i.status = absent
	case persistence.Busy:
		i.status, i.id = busyThere, f.Instance.ID
	case persistence.Loaded:
		def := b.ep.handlers.sagas[f.Instance.Saga]
		if def == nil { // an id of another endpoint's saga: not ours to answer for
			i.status = absent
			return
		}
		i.def = def
		b.unify(i, f)
	}
}

// unify gives an instance both of its names. In a batch where every message names its instance by key there
// is nothing to find under the other one.
func (b *batch) unify(i *instance, f persistence.Found) {
	if !b.byID {
		b.open(i, f)
		return
	}
	byKey, byID := handle{saga: f.Instance.Saga, key: f.Instance.Key}, handle{id: f.Instance.ID}
	for _, h := range [2]handle{byKey, byID} {
		other := b.find[h]
		switch {
		case other == nil:
			b.find[h] = i
		case other != i && other.session != nil: // its twin was settled first
			b.replace(i, other)
			return
		}
		if !b.ep.memory.hold(b, h) {
			i.status = busyHere
			return
		}
	}
	b.open(i, f)
}

// replace makes the messages of i those of its twin.
func (b *batch) replace(i, twin *instance) {
	for _, m := range b.messages {
		if m.instance == i {
			m.instance = twin
		}
	}
	b.find[i.asked] = twin
}

func (b *batch) open(i *instance, f persistence.Found) {
	i.id, i.version, i.row = f.Instance.ID, f.Instance.Version, f.Row
	i.status = ours
	b.instances = append(b.instances, i)
	if f.Faulty != nil {
		i.status, i.fault = faulty, saga.Permanent(f.Faulty)
		return
	}
	session, err := i.def.Open(f.Instance)
	switch {
	case isNewerState(err):
		i.status, i.fault = newer, err
	case err != nil:
		i.status, i.fault = faulty, err
	default:
		i.session = session
	}
}

const mostHolderWait = 50 * time.Millisecond

// awaitWorker: when the whole batch is for instances that another worker of this process has, its messages are ready to
// step as soon as that one has committed. So one worker waits with them in hand, and on a hot instance the two take
// turns: one takes and decodes while the other steps and commits. It holds no instance meanwhile.
func (b *batch) awaitWorker(ctx context.Context) {
	var first *instance
	for _, m := range b.messages {
		switch {
		case m.fate != fateLeft || m.instance == nil:
			return
		case first == nil:
			first = m.instance
		}
	}
	done, ok := b.ep.memory.waitFor(first.asked)
	if !ok {
		return
	}
	defer done()
	begun := time.Now()
	ready := b.ep.pump.untilEnded(ctx, mostHolderWait, func() bool { return b.ep.memory.hold(b, first.asked) })
	b.turned = holderWait{def: first.def, took: time.Since(begun), failed: !ready}
	if !ready {
		return
	}
	for _, m := range b.messages {
		if i := m.instance; i.status == busyHere && b.ep.memory.hold(b, i.asked) {
			i.status = unknown
			b.asked = append(b.asked, i)
		}
	}
}

// waitForHolder: when the whole batch is for instances that other processes hold, one worker of this process waits
// for one of them, instead of all of them taking and letting go for as long as that lasts. It holds no instance, so it
// cannot be part of a deadlock.
func (b *batch) waitForHolder(ctx context.Context) error {
	var first *instance
	for _, m := range b.messages {
		switch {
		case m.fate != fateLeft || m.instance == nil:
			return nil
		case m.instance.status != busyHere && m.instance.status != busyThere:
			return nil
		case first == nil && m.instance.status == busyThere:
			first = m.instance
		}
	}
	if first == nil {
		return nil
	}
	done, ok := b.ep.memory.waitFor(handle{id: first.id})
	if !ok {
		return nil
	}
	defer done()
	wait := max(mostHolderWait, first.def.Options().LockWait)
	if _, err := b.conn.Exec(ctx, queue.LockTimeout(), fmt.Sprint(wait.Milliseconds())); err != nil {
		return fmt.Errorf("wait for a saga instance: %w", err)
	}
	begun := time.Now()
	err := b.ep.bus.sagas.Wait(ctx, b.conn, first.id)
	b.waited = holderWait{def: first.def, took: time.Since(begun), failed: err != nil}
	if err != nil {
		return b.stillBusy(ctx, err)
	}
	return b.askAgain(ctx, first)
}

// stillBusy: the wait ended by its timeout, which is no error of the batch; it has failed the transaction though.
func (b *batch) stillBusy(ctx context.Context, err error) error {
	if pg.ClassOf(err) != pg.Busy {
		return err
	}
	b.abandon(ctx)
	return nil
}

// askAgain loads the one instance that was waited for, now with its lock held by us.
func (b *batch) askAgain(ctx context.Context, i *instance) error {
	ref := persistence.Ref{Saga: i.asked.saga, Key: i.asked.key, ID: i.asked.id, Lock: true}
	found, err := b.ep.bus.sagas.Load(ctx, b.conn, []persistence.Ref{ref})
	if err != nil {
		return err
	}
	b.settle(i, found[0])
	return nil
}

var _ persistence.Sender = (*pgx.Conn)(nil)
