package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/base/fields"
)

// Session steps the messages of one batch on one instance, in memory. It belongs to one goroutine at a time. It keeps
// the state after the last successful step as bytes, so a step that fails has nothing to undo.
type Session struct {
	def    *Definition
	opened Instance // as loaded, before any upcast
	last   Instance // after the last successful step

	state     any // *S, decoded, unchanged by failed steps; nil: decode last.State first
	reused    int // successful steps since state was decoded
	live      bool
	foreign   bool // opened may have fields that S does not have
	stepped   bool // a step has succeeded, so last is to be stored
	completed bool // the row is to be deleted
	over      bool // the instance has completed, and is remembered
}

// Open prepares an instance for steps. The first successful step starts Instance{New: true, ID: fresh, Key: key}.
// Open decodes the state of any other instance, after an upcast if its version is older. It returns ErrNewerState, or
// ErrState (permanent) if the state cannot be read.
func (d *Definition) Open(i Instance) (*Session, error) {
	if i.ID.IsZero() {
		return nil, fmt.Errorf("open saga %s: the instance has no id", nameOf(d.name, i.Key))
	}
	if i.Saga == "" {
		i.Saga = d.name
	}
	if i.Saga != d.name {
		return nil, fmt.Errorf("open saga %s: the instance belongs to saga %s", nameOf(d.name, i.Key), i.Saga)
	}
	s := &Session{def: d, opened: i, last: i, live: !i.New}
	if i.New {
		s.last.State, s.last.StateVersion = nil, d.opts.StateVersion
		return s, nil
	}
	if s.over = !i.RememberedUntil().IsZero(); s.over {
		return s, nil // its state is no longer read
	}
	if err := s.upcast(); err != nil {
		return nil, fmt.Errorf("open saga %s: %w", nameOf(d.name, i.Key), err)
	}
	foreign, err := s.decode()
	if err != nil {
		return nil, fmt.Errorf("open saga %s: %w", nameOf(d.name, i.Key), err)
	}
	s.foreign = foreign && max(i.StateVersion, 1) == s.last.StateVersion
	return s, nil
}

func (s *Session) upcast() error {
	from, now := max(s.last.StateVersion, 1), s.def.opts.StateVersion
	s.last.StateVersion = now
	switch {
	case from == now:
		return nil
	case from > now:
		return fmt.Errorf("%w: version %d, and this program has %d", ErrNewerState, from, now)
	}
	up := s.def.upcasts[from]
	if up == nil {
		return stateError(fmt.Errorf("no Upcast from version %d", from))
	}
	state, err := up(s.last.State)
	if err != nil {
		return stateError(fmt.Errorf("upcast from version %d: %w", from, err))
	}
	s.last.State = state
	return nil
}

var (
	null    = []byte("null")
	errNull = errors.New("it is null, and no step writes null")
)

func stateError(err error) error { return &PermanentError{Err: fmt.Errorf("%w: %w", ErrState, err)} }

// decode decodes the bytes of the last successful step, or makes the zero S for a new instance. foreign is set if the
// bytes may have fields that S does not have.
func (s *Session) decode() (foreign bool, err error) {
	s.reused = 0
	if s.last.State == nil {
		s.state = s.def.newState()
		return false, nil
	}
	if bytes.Equal(bytes.TrimSpace(s.last.State), null) && !fields.Decodes(s.def.stateType) {
		return false, stateError(errNull) // encoding/json would read it as the zero state
	}
	state, foreign, err := s.def.decodeState(s.last.State)
	if err != nil {
		return false, stateError(s.changed(err))
	}
	s.state = state
	return foreign, nil
}

// changed adds advice to an error of encoding/json that a changed type of a field may have caused.
func (s *Session) changed(err error) error {
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return err
	}
	now := s.def.opts.StateVersion
	return fmt.Errorf("%w; if the type of the field has changed, raise StateVersion to %d and give an Upcast from %d",
		err, now+1, now)
}

// Instance returns the instance to store after the last successful step, or an error if no step has succeeded.
// Version is unchanged: the store raises it.
func (s *Session) Instance() (Instance, error) {
	if !s.live {
		return Instance{}, fmt.Errorf("saga %s: no step succeeded, so there is no instance",
			nameOf(s.def.name, s.last.Key))
	}
	return s.last, nil
}

// Live reports whether there is an instance. For a new instance it is false until the first successful step. It stays
// true after the instance has completed, because its row may have to be inserted and deleted.
func (s *Session) Live() bool { return s.live }

// Completed reports whether the row of the instance must be deleted. An instance that Options.Remember keeps is not
// Completed until that duration has passed; see Outcome.Completed.
func (s *Session) Completed() bool { return s.completed }

// Changed reports whether the state, the pending timeouts or the completion differ from the instance that was opened.
// An upcast alone is no change: until a step has succeeded, the previous release must be able to read the state.
func (s *Session) Changed() bool {
	if !s.stepped {
		return false
	}
	return s.opened.New || s.completed || s.pendingChanged() || s.stateChanged()
}

func (s *Session) pendingChanged() bool {
	same := func(a, b Pending) bool { return a.ID == b.ID && a.Name == b.Name && a.Due.Equal(b.Due) }
	return !slices.EqualFunc(s.opened.Pending, s.last.Pending, same)
}

// stateChanged compares bytes. Stored bytes that the store has reformatted (jsonb writes spaces and sorts keys) are
// first decoded and encoded again; otherwise every state would look changed.
func (s *Session) stateChanged() bool {
	if s.opened.StateVersion != s.last.StateVersion && max(s.opened.StateVersion, 1) != s.last.StateVersion {
		return true
	}
	if bytes.Equal(s.opened.State, s.last.State) {
		return false
	}
	if !reformatted(s.opened.State) {
		return true
	}
	state := s.def.newState()
	if err := decodeJSON(s.opened.State, state); err != nil {
		return true
	}
	b, err := encodeJSON(state)
	return err != nil || !bytes.Equal(b, s.last.State)
}

// reformatted reports whether b has space around the first key, which encoding/json never writes.
func reformatted(b []byte) bool {
	if len(b) < 2 || b[0] != '{' || b[1] != '"' {
		return !bytes.Equal(b, []byte("{}"))
	}
	end := stringEnd(b, 2) + 1
	return end+1 >= len(b) || b[end] != ':' || b[end+1] == ' '
}
