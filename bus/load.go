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

// loader finds the instances that the messages of a batch are for. Its memory serves the next batch.
type loader struct {
	in        *decoder
	instances []*instance
	holds     holding

	find  map[handle]*instance
	asked []*instance
	refs  []persistence.Ref
	byID  bool // a message names its instance by id

	turned holderWait // for a worker of this process
	waited holderWait // for another process
}

func (l *loader) reset() {
	clear(l.asked)
	clear(l.instances)
	clear(l.find)
	*l = loader{
		in: l.in, instances: l.instances[:0], holds: l.holds[:0], find: l.find, asked: l.asked[:0], refs: l.refs[:0],
	}
}

// load finds the instances of the batch, one load for each however many messages it has. Those in the hands
// of another worker of this process are not even asked for.
func (l *loader) load(ctx context.Context) error {
	for _, m := range l.in.messages {
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
			l.byID = true
		}
		i := l.find[h]
		if i == nil {
			i = &instance{def: m.consumer.def, asked: h, write: -1}
			l.find[h] = i
			if l.in.ep.memory.hold(&l.holds, h) {
				l.asked = append(l.asked, i)
			} else {
				i.status = busyHere
			}
		}
		m.instance = i
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
	for _, m := range l.in.messages {
		if i := m.instance; i != nil && (m.call == nil || m.consumer.def != i.def) {
			l.assign(m, i)
		}
	}
	return nil
}

// assign gives a message to the saga that has the instance which it names. An instance of a saga that does not handle
// the message is none of its own.
func (l *loader) assign(m *message, i *instance) {
	if i.status == busyHere || i.status == busyThere || i.status == unknown {
		return // nobody has looked whose it is
	}
	c := m.consumer.of(i.def)
	if c == nil || i.status == absent {
		c = m.consumer
		m.instance = &instance{def: c.def, asked: i.asked, status: absent, write: -1}
	}
	if m.consumer = c; m.call == nil || m.call.Definition() != c.def {
		l.in.prepareCall(m)
	}
}

// ask loads instances and sorts out what came back.
func (l *loader) ask(ctx context.Context, asked []*instance) error {
	if len(asked) == 0 {
		return nil
	}
	for _, i := range asked {
		lock := i.def.Store() == saga.Pessimistic || l.in.ep.memory.mustLock(i.asked) || l.in.ep.handlers.shared &&
			!i.asked.id.IsZero()
		l.refs = append(l.refs, persistence.Ref{Saga: i.asked.saga, Key: i.asked.key, ID: i.asked.id, Lock: lock})
	}
	found, err := l.in.ep.bus.sagas.Load(ctx, l.in.conn, l.refs)
	if err != nil {
		return err
	}
	for n, i := range asked {
		l.classify(i, found[n])
	}
	return nil
}

// classify turns what was found into an instance of the batch. A key and an id that name the same instance
// become one before the first step.
func (l *loader) classify(i *instance, f persistence.Found) {
	switch f.Status {
	case persistence.Absent:
		i.status = absent
	case persistence.Busy:
		i.status, i.id = busyThere, f.Instance.ID
	case persistence.Loaded:
		def := l.in.ep.handlers.sagas[f.Instance.Saga]
		if def == nil { // an id of another endpoint's saga: not ours to answer for
			i.status = absent
			return
		}
		i.def = def
		l.unify(i, f)
	}
}

// unify gives an instance both of its names. In a batch where every message names its instance by key there
// is nothing to find under the other one.
func (l *loader) unify(i *instance, f persistence.Found) {
	if !l.byID {
		l.open(i, f)
		return
	}
	byKey, byID := handle{saga: f.Instance.Saga, key: f.Instance.Key}, handle{id: f.Instance.ID}
	for _, h := range [2]handle{byKey, byID} {
		other := l.find[h]
		switch {
		case other == nil:
			l.find[h] = i
		case other != i && other.session != nil: // its twin was settled first
			l.replace(i, other)
			return
		}
		if !l.in.ep.memory.hold(&l.holds, h) {
			i.status = busyHere
			return
		}
	}
	l.open(i, f)
}

// replace makes the messages of i those of its twin.
func (l *loader) replace(i, twin *instance) {
	for _, m := range l.in.messages {
		if m.instance == i {
			m.instance = twin
		}
	}
	l.find[i.asked] = twin
}

func (l *loader) open(i *instance, f persistence.Found) {
	i.id, i.version, i.row = f.Instance.ID, f.Instance.Version, f.Row
	i.status = ours
	l.instances = append(l.instances, i)
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

// begin makes the instance that a message may start. It is stored only if a step succeeds.
func (l *loader) begin(i *instance, m *message) bool {
	id := newID()
	session, err := i.def.Open(saga.Instance{ID: id, New: true, Saga: i.def.Name(), Key: m.call.Key()})
	if err != nil {
		l.in.fail(m, err)
		return false
	}
	i.id, i.session, i.status = id, session, ours
	l.instances = append(l.instances, i)
	return true
}

const mostHolderWait = 50 * time.Millisecond

// awaitWorker: when the whole batch is for instances that another worker of this process has, its messages are ready to
// step as soon as that one has committed. So one worker waits with them in hand, and on a hot instance the two take
// turns: one takes and decodes while the other steps and commits. It holds no instance meanwhile.
func (l *loader) awaitWorker(ctx context.Context) {
	var first *instance
	for _, m := range l.in.messages {
		switch {
		case m.fate != fateLeft || m.instance == nil:
			return
		case first == nil:
			first = m.instance
		}
	}
	done, ok := l.in.ep.memory.waitFor(first.asked)
	if !ok {
		return
	}
	defer done()
	begun := time.Now()
	ready := l.in.ep.pump.untilEnded(ctx, mostHolderWait,
		func() bool { return l.in.ep.memory.hold(&l.holds, first.asked) })
	l.turned = holderWait{def: first.def, took: time.Since(begun), failed: !ready}
	if !ready {
		return
	}
	for _, m := range l.in.messages {
		if i := m.instance; i.status == busyHere && l.in.ep.memory.hold(&l.holds, i.asked) {
			i.status = unknown
			l.asked = append(l.asked, i)
		}
	}
}

// waitForHolder: when the whole batch is for instances that other processes hold, one worker of this process waits
// for one of them, instead of all of them taking and letting go for as long as that lasts. It holds no instance, so it
// cannot be part of a deadlock.
func (l *loader) waitForHolder(ctx context.Context) error {
	var first *instance
	for _, m := range l.in.messages {
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
	done, ok := l.in.ep.memory.waitFor(handle{id: first.id})
	if !ok {
		return nil
	}
	defer done()
	wait := max(mostHolderWait, first.def.Options().LockWait)
	if _, err := l.in.conn.Exec(ctx, queue.LockTimeout(), fmt.Sprint(wait.Milliseconds())); err != nil {
		return fmt.Errorf("wait for a saga instance: %w", err)
	}
	begun := time.Now()
	err := l.in.ep.bus.sagas.Wait(ctx, l.in.conn, first.id)
	l.waited = holderWait{def: first.def, took: time.Since(begun), failed: err != nil}
	switch {
	case pg.ClassOf(err) == pg.Busy:
		return nil // the timeout has failed the transaction, but no message has its instance: nothing is written
	case err != nil:
		return err
	}
	return l.askAgain(ctx, first)
}

// askAgain loads the one instance that was waited for, now with its lock held by us.
func (l *loader) askAgain(ctx context.Context, i *instance) error {
	ref := persistence.Ref{Saga: i.asked.saga, Key: i.asked.key, ID: i.asked.id, Lock: true}
	found, err := l.in.ep.bus.sagas.Load(ctx, l.in.conn, []persistence.Ref{ref})
	if err != nil {
		return err
	}
	l.classify(i, found[0])
	return nil
}

var _ persistence.Sender = (*pgx.Conn)(nil)
