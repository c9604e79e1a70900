package sagatest

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/edda-go/edda/saga"
)

// Store stores instances in memory with the rules of the database: one live instance of a (saga, key), a comparison
// of id and version before each write, and versions without gaps. It is safe for concurrent use.
type Store struct {
	mu   sync.Mutex // guards rows and keys
	rows map[saga.ID]row
	keys map[name]saga.ID
}

type name struct{ saga, key string }

// row is an instance as in a table, with structured values encoded.
type row struct {
	name                name
	version             int64
	stateVersion        int
	state               []byte
	pending, originator []byte
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{rows: map[saga.ID]row{}, keys: map[name]saga.ID{}}
}

// Ref names one instance: by ID if it is not zero, else by Saga and Key.
type Ref struct {
	Saga string
	Key  string
	ID   saga.ID
}

// Load returns the instance that ref names; ok is false if there is no such instance.
func (s *Store) Load(ref Ref) (i saga.Instance, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ref.ID
	if id.IsZero() {
		id = s.keys[name{ref.Saga, ref.Key}]
	}
	r, ok := s.rows[id]
	if !ok || r.name.saga != ref.Saga {
		return saga.Instance{}, false, nil
	}
	i, err = r.instance(id)
	return i, err == nil, err
}

func (r row) instance(id saga.ID) (saga.Instance, error) {
	i := saga.Instance{
		ID: id, Saga: r.name.saga, Key: r.name.key,
		Version: r.version, StateVersion: r.stateVersion, State: bytes.Clone(r.state),
	}
	if err := json.Unmarshal(r.pending, &i.Pending); err != nil {
		return i, err
	}
	return i, json.Unmarshal(r.originator, &i.Originator)
}

func rowOf(i saga.Instance) (r row, err error) {
	r = row{name: name{i.Saga, i.Key}, stateVersion: i.StateVersion, state: bytes.Clone(i.State)}
	if r.pending, err = json.Marshal(i.Pending); err != nil {
		return r, err
	}
	r.originator, err = json.Marshal(i.Originator)
	return r, err
}

// Op is the operation of a save on an instance.
type Op uint8

const (
	Check            Op = iota // it was read and not changed: still compared, because messages were decided on it
	Update                     // its version is raised
	Complete                   // it is removed
	Start                      // it begins with version 1
	StartAndComplete           // it is inserted and removed at once
)

// Write is one instance to save. Instance.Version is the version that was loaded; it is ignored for a start.
type Write struct {
	Op       Op
	Instance saga.Instance
}

// Save writes a batch and reports for each write, in order, whether it won. A write loses if the instance was
// started, changed or completed since the load. Starts come first, so a start loses against a live instance of its
// key that a different write of the batch completes.
func (s *Store) Save(writes []Write) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]row, len(writes))
	for n, w := range writes {
		var err error
		if rows[n], err = rowOf(w.Instance); err != nil {
			return nil, err
		}
	}
	won := make([]bool, len(writes))
	for n, w := range writes {
		if w.Op >= Start {
			won[n] = s.start(w.Instance.ID, rows[n])
		}
	}
	for n, w := range writes {
		if w.Op < Start {
			won[n] = s.change(w, rows[n])
		}
	}
	for n, w := range writes { // last, so that one batch cannot start a key twice
		if w.Op == StartAndComplete && won[n] {
			s.remove(w.Instance.ID)
		}
	}
	return won, nil
}

func (s *Store) start(id saga.ID, r row) bool {
	_, taken := s.keys[r.name]
	if _, known := s.rows[id]; taken || known {
		return false
	}
	r.version = 1
	s.rows[id], s.keys[r.name] = r, id
	return true
}

func (s *Store) change(w Write, r row) bool {
	old, ok := s.rows[w.Instance.ID]
	if !ok || old.version != w.Instance.Version {
		return false
	}
	switch w.Op {
	case Update:
		r.name, r.version = old.name, old.version+1
		s.rows[w.Instance.ID] = r
	case Complete:
		s.remove(w.Instance.ID)
	}
	return true
}

func (s *Store) remove(id saga.ID) {
	delete(s.keys, s.rows[id].name)
	delete(s.rows, id)
}
