package contention

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
)

// Memory is the memory of one endpoint. Safe for concurrent use.
type Memory struct {
	mu        sync.Mutex
	held      map[Handle]*Holding   // instances that a worker of this process has in hand
	contended map[Handle]contention // instances that lost saves lately
	lost      map[saga.ID]int       // saves lost by a message since it was last written
	trouble   map[saga.ID]int       // transient errors in a row while this message was stepping
	toFail    map[saga.ID]error     // messages whose next step is to fail with this error
	waiting   map[Handle]struct{}   // instances that one worker of this process waits for
	newer     time.Time             // when a message that waits for a newer program was last logged
	unknown   map[string]struct{}   // kinds that were logged because their messages wait
	losing    map[string]struct{}   // fields that states lose, and that were logged
}

// Handle names an instance before and after it is loaded: by key or by id.
type Handle struct {
	Saga, Key string
	ID        saga.ID
}

type contention struct {
	losses int
	at     time.Time
	until  time.Time // no worker may hold the instance before this time
}

const (
	writeAfter   = 2               // lost saves, after which a message is written back with their number
	lockFor      = 5 * time.Second // how long an instance is loaded with its lock
	firstWait    = 5 * time.Millisecond
	longestWait  = 50 * time.Millisecond
	FreeTroubles = 5 // in a row, before an error during a step counts as a failure of that step
	mostRemember = 100_000
	mostKinds    = 100 // or fields that no program supports; senders make them up, and the log must not grow with them
)

// NewMemory returns an empty memory.
func NewMemory() *Memory {
	return &Memory{
		held: map[Handle]*Holding{}, contended: map[Handle]contention{}, lost: map[saga.ID]int{},
		trouble: map[saga.ID]int{}, toFail: map[saga.ID]error{}, waiting: map[Handle]struct{}{},
		unknown: map[string]struct{}{}, losing: map[string]struct{}{},
	}
}

// Holding lists the instances that one batch holds in this process.
type Holding []Handle

// Hold adds h to by, unless a different batch of this process holds it, or h waits after a lost save.
func (m *Memory) Hold(by *Holding, h Handle) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder := m.held[h]; holder != nil {
		return holder == by
	}
	if len(m.contended) > 0 && time.Now().Before(m.contended[h].until) {
		return false
	}
	m.held[h] = by
	*by = append(*by, h)
	return true
}

// Release releases all instances in by.
func (m *Memory) Release(by *Holding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range *by {
		delete(m.held, h)
	}
	*by = (*by)[:0]
}

// MustLock reports whether an optimistic instance has lost often enough to be loaded with its lock: after that many
// lost saves, or never if after is negative.
func (m *Memory) MustLock(h Handle, after int) bool {
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
	return after >= 0 && c.losses >= after
}

// WaitOf returns how long no worker may hold h after a lost save.
func (m *Memory) WaitOf(h Handle) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, time.Until(m.contended[h].until))
}

// LoseInstance counts a lost save of an instance, under both of its names. With waits, no worker may hold it for a
// random time, whose bound doubles with each loss.
func (m *Memory) LoseInstance(waits bool, handles ...Handle) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.contended)
	now, wait := time.Now(), time.Duration(0)
	for n, h := range handles {
		c := contention{losses: m.contended[h].losses + 1, at: now}
		if waits && n == 0 {
			wait = rand.N(min(longestWait, firstWait<<min(c.losses-1, 8)))
		}
		c.until = now.Add(wait)
		m.contended[h] = c
	}
}

// LoseMessage counts a lost save of a message that stays in the queue. It returns the number of losses if they are to
// be written down now, and 0 while they are few.
func (m *Memory) LoseMessage(id saga.ID) (losses int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.lost)
	m.lost[id]++
	if m.lost[id] < writeAfter {
		return 0
	}
	return m.lost[id]
}

// Charge counts an error that came while a message was stepping. After FreeTroubles in a row the next step of the
// message fails with the error, and spent is true. err may be nil if only the connection was lost.
func (m *Memory) Charge(id saga.ID, err error) (spent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.trouble)
	m.trouble[id]++
	if m.trouble[id] <= FreeTroubles {
		return false
	}
	if err == nil {
		err = errors.New("an error of the connection")
	}
	bounded(m.toFail)
	m.toFail[id] = fmt.Errorf("for the %dth time in a row: %w", FreeTroubles+1, err)
	return true
}

// FailNext makes the next step of a message fail with err: it was found guilty in a batch that rolled back.
func (m *Memory) FailNext(id saga.ID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounded(m.toFail)
	m.toFail[id] = err
}

// Clear forgets that errors made a message fail: writing only its failure met the same error, so the message is not
// the cause. A failure that its handler caused stays.
func (m *Memory) Clear(id saga.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble[id] > FreeTroubles {
		delete(m.toFail, id)
		delete(m.trouble, id)
	}
}

// FailureOf returns the error for the next step of a message to fail with, or nil if it is to run.
func (m *Memory) FailureOf(id saga.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.toFail) == 0 {
		return nil
	}
	return m.toFail[id]
}

// Rehearses reports whether the failure of a message is to be rehearsed: if only transient errors speak against it,
// the first time. The next batch that takes the message steps it once more, and a further error makes it fail
// permanently.
func (m *Memory) Rehearses(id saga.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.toFail[id] == nil || m.trouble[id] != FreeTroubles+1 {
		return false
	}
	delete(m.toFail, id)
	m.trouble[id]++
	return true
}

// Forget drops the records of messages that have left the queue, or were written anew.
func (m *Memory) Forget(messages iter.Seq[saga.ID]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lost)+len(m.trouble)+len(m.toFail) == 0 {
		return
	}
	for id := range messages {
		delete(m.lost, id)
		delete(m.trouble, id)
		delete(m.toFail, id)
	}
}

// WaitFor makes the caller the one worker of this process that waits for an instance.
func (m *Memory) WaitFor(h Handle) (done func(), ok bool) {
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

// NewerSeen reports whether to log that a message waits for a newer program: once per wait.
func (m *Memory) NewerSeen(wait time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.newer) < wait {
		return false
	}
	m.newer = time.Now()
	return true
}

// NewKind reports whether to log that messages of a kind wait for a program that supports it: once for each kind, and
// for at most mostKinds of them.
func (m *Memory) NewKind(kind string) bool { return m.first(m.unknown, kind) }

// NewField reports whether to log that the states of a saga lose a field: once for each field, and for at most
// mostKinds of them.
func (m *Memory) NewField(saga, field string) bool { return m.first(m.losing, saga+"/"+field) }

// first adds a name to a set, and reports whether it is new there and has room.
func (m *Memory) first(of map[string]struct{}, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, said := of[name]; said || len(of) >= mostKinds {
		return false
	}
	of[name] = struct{}{}
	return true
}

// bounded empties a map that has grown too large: its contents were advice.
func bounded[K comparable, V any](m map[K]V) {
	if len(m) >= mostRemember {
		clear(m)
	}
}
