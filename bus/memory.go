package bus

import (
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// memory is what an endpoint of this process remembers between batches. All of it is advice or bookkeeping:
// a process that forgets it is slower and no less right. Safe for concurrent use.
type memory struct {
	mu        sync.Mutex
	held      map[handle]*holding   // instances in the hands of a worker of this process
	contended map[handle]contention // instances that lost saves lately
	lost      map[saga.ID]int       // saves lost by a message since it was last written
	trouble   map[saga.ID]int       // times in a row that the framework failed while this message was stepping
	toFail    map[saga.ID]error     // messages whose next step is to fail with this error
	waiting   map[handle]struct{}   // instances that one worker of this process waits for
	newer     time.Time             // when it was last said that a message waits for a newer program
}

// handle names an instance before and after it is loaded: by key or by id.
type handle struct {
	saga, key string
	id        saga.ID
}

type contention struct {
	losses int
	at     time.Time
}

const (
	lockAfter    = 2               // lost saves, after which an instance is loaded with its lock
	lockFor      = 5 * time.Second // and for how long
	mostRemember = 100_000
)

func newMemory() *memory {
	return &memory{
		held: map[handle]*holding{}, contended: map[handle]contention{}, lost: map[saga.ID]int{},
		trouble: map[saga.ID]int{}, toFail: map[saga.ID]error{}, waiting: map[handle]struct{}{},
	}
}

// holding is the instances that one batch holds in this process.
type holding []handle

// hold adds h to what by holds, unless another batch of this process holds it.
func (m *memory) hold(by *holding, h handle) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder := m.held[h]; holder != nil {
		return holder == by
	}
	m.held[h] = by
	*by = append(*by, h)
	return true
}

// release gives back everything that by holds.
func (m *memory) release(by *holding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range *by {
		delete(m.held, h)
	}
	*by = (*by)[:0]
}

// mustLock reports whether an optimistic instance has lost so often that it is loaded with its lock.
func (m *memory) mustLock(h handle) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.contended[h]
	if !ok {
		return false
	}
	if time.Since(c.at) > lockFor {
		delete(m.contended, h)
		return false
	}
	return c.losses >= lockAfter
}

// loseInstance counts a lost save of an instance, under both of its names.
func (m *memory) loseInstance(handles ...handle) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.contended)
	for _, h := range handles {
		m.contended[h] = contention{losses: m.contended[h].losses + 1, at: time.Now()}
	}
}

// loseMessage counts a lost save of a message that stays in the queue, and returns how many there were.
func (m *memory) loseMessage(id saga.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.lost)
	m.lost[id]++
	return m.lost[id]
}

// charge counts trouble of the framework while a message was stepping, and returns how often there was.
func (m *memory) charge(id saga.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.trouble)
	m.trouble[id]++
	return m.trouble[id]
}

// failNext makes the next step of a message fail with err: it was found guilty in a batch that rolled back.
func (m *memory) failNext(id saga.ID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.toFail)
	m.toFail[id] = err
}

// clear takes back that trouble made a message fail: writing no more than its failure down meets the same
// trouble, so it is not the message's. What its handler was seen to do stays.
func (m *memory) clear(id saga.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble[id] > freeTroubles {
		delete(m.toFail, id)
		delete(m.trouble, id)
	}
}

// failureOf returns the error that the next step of a message is to fail with, nil when it is to run.
func (m *memory) failureOf(id saga.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.toFail) == 0 {
		return nil
	}
	return m.toFail[id]
}

// rehearses reports whether the failure that a message is to fail with is to be rehearsed: when only trouble speaks
// against it, for the first time. The next batch that takes the message steps it once more, and further trouble
// makes it fail for good.
func (m *memory) rehearses(id saga.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.toFail[id] == nil || m.trouble[id] != freeTroubles+1 {
		return false
	}
	delete(m.toFail, id)
	m.trouble[id]++
	return true
}

// forget drops what is remembered of messages that have left the queue, or were written anew.
func (m *memory) forget(messages []*message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lost)+len(m.trouble)+len(m.toFail) == 0 {
		return
	}
	for _, msg := range messages {
		if msg.fate != fateLeft {
			delete(m.lost, msg.ID)
			delete(m.trouble, msg.ID)
			delete(m.toFail, msg.ID)
		}
	}
}

// waitFor makes the caller the one worker of this process that waits for an instance.
func (m *memory) waitFor(h handle) (done func(), ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.waiting[h]; taken {
		return nil, false
	}
	m.waiting[h] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiting, h)
	}, true
}

// newerSeen reports whether to say that a message waits for a newer program: once for as long as such a message waits.
func (m *memory) newerSeen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.newer) < newerWait {
		return false
	}
	m.newer = time.Now()
	return true
}

// bounded empties a map that has grown too large: what it held was advice.
func bounded[K comparable, V any](m map[K]V) {
	if len(m) >= mostRemember {
		clear(m)
	}
}
