package instances

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Repair is a new state for one version of an instance.
type Repair struct {
	Saga, Key string
	Version   int64 // expected version; if it has changed, ErrVersion
	State     []byte
	Reason    string // "" is the reason of the context, see audit.Because

	// Definition is the saga's, if the program has it: then State must be of its current version, without unknown
	// fields, and is stored as the saga would write it. Without a definition State must be JSON of the row's version.
	Definition *saga.Definition
}

// Repaired is the result of a repair.
type Repaired struct {
	ID            saga.ID
	Version       int64 // the instance's new version
	Before, After []byte
}

// Repair replaces the state of an instance. Its timeouts and its originator stay, and no handler is called. Repair
// waits for a handler that has locked the instance; if the handler saves a version, Repair returns ErrVersion.
//
// It also returns ErrNotFound, ErrRemembered, ErrFaulty, ErrState, saga.ErrNewerState if a program with a newer
// definition has written the row, and saga.ErrTooLarge.
func (o *Operator) Repair(ctx context.Context, r Repair) (done Repaired, err error) {
	if err = r.check(); err == nil {
		on := target{saga: r.Saga, key: r.Key, version: r.Version, def: r.Definition, reason: r.Reason}
		err = o.locked(ctx, on, func(c *change) (err error) {
			done, err = c.repair(ctx, r)
			return err
		})
	}
	if err != nil {
		return Repaired{}, fmt.Errorf("repair saga %.80s/%.80q: %w", r.Saga, r.Key, err)
	}
	return done, nil
}

func (r *Repair) check() error {
	switch {
	case r.Version < 1:
		return fmt.Errorf("the version is %d: name the one that you have seen", r.Version)
	case r.Definition != nil && r.Definition.Err() != nil:
		return r.Definition.Err()
	case r.Definition != nil && r.Definition.Name() != r.Saga:
		return fmt.Errorf("the definition is of saga %s", r.Definition.Name())
	}
	return nil
}

func (c *change) repair(ctx context.Context, r Repair) (Repaired, error) {
	i := &c.row.Instance
	state, version, err := stateOf(r.Definition, i, r.State)
	if err != nil {
		return Repaired{}, err
	}
	keeps, err := c.keeps(ctx)
	if err != nil {
		return Repaired{}, err
	}
	page, err := c.record(ctx, history.Repaired, keeps.kept(state))
	if err != nil {
		return Repaired{}, err
	}
	before := map[string]any{"version": i.Version, "state": keeps.public(i.State)}
	after := map[string]any{"version": i.Version + 1, "state": keeps.public(state)}
	done := Repaired{ID: i.ID, Version: i.Version + 1, Before: i.State, After: state}
	i.State, i.StateVersion = state, version
	if err := c.save(ctx, persistence.Update, page); err != nil {
		return Repaired{}, err
	}
	return done, c.note(ctx, "saga.repair", before, after)
}

// stateOf returns a new state of an instance in its stored form, and its version.
func stateOf(d *saga.Definition, i *saga.Instance, text []byte) (state []byte, version int, err error) {
	if len(text) > persistence.MaxState {
		return nil, 0, fmt.Errorf("the state has %d bytes, limit %d: %w", len(text), persistence.MaxState,
			saga.ErrTooLarge)
	}
	if len(text) == 0 {
		return nil, 0, fmt.Errorf("%w: it is empty", ErrState)
	}
	var value any
	if err := saga.JSON.Decode(text, &value); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrState, err)
	}
	if value == nil {
		return nil, 0, fmt.Errorf("%w: it is null, and no step writes null", ErrState)
	}
	if d == nil {
		var packed bytes.Buffer
		err := json.Compact(&packed, text)
		return packed.Bytes(), i.StateVersion, err
	}
	version = d.Options().StateVersion
	if i.StateVersion > version {
		return nil, 0, fmt.Errorf("%w: version %d, and this program knows %d", saga.ErrNewerState, i.StateVersion,
			version)
	}
	if state, err = throughType(d.StateType(), text); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrState, err)
	}
	if len(state) > persistence.MaxState {
		return nil, 0, fmt.Errorf("the state has %d bytes as the saga writes it, limit %d: %w", len(state),
			persistence.MaxState, saga.ErrTooLarge)
	}
	return state, version, nil
}

// throughType decodes a state into its type, refuses fields that the type does not have, and encodes it again.
func throughType(of reflect.Type, text []byte) (state []byte, err error) {
	into := reflect.New(of)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its type panicked: %v", v)
		}
	}()
	if err := d.Decode(into.Interface()); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind it")
	}
	return json.Marshal(into.Interface())
}
