package repair

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

// Repair implements operate.Instances.Repair, and returns the instance as it was and as it is.
func (s *Store) Repair(ctx context.Context, t Target, state []byte) (before, after saga.Instance, err error) {
	if err = t.check(); err == nil {
		err = s.locked(ctx, t, func(c *change) error {
			before = c.row.Instance
			err := c.repair(ctx, state)
			after = c.row.Instance
			return err
		})
	}
	if err != nil {
		return saga.Instance{}, saga.Instance{}, fmt.Errorf("repair %s: %w", t.name(), err)
	}
	after.Version++
	return before, after, nil
}

// check refuses a target without a version, and a definition that is not the saga's.
func (t *Target) check() error {
	switch {
	case t.Version < 1:
		return fmt.Errorf("the version is %d: give the version whose state you have edited", t.Version)
	case t.Definition != nil && t.Definition.Err() != nil:
		return t.Definition.Err()
	case t.Definition != nil && t.Definition.Name() != t.Saga:
		return fmt.Errorf("the definition is of saga %s", t.Definition.Name())
	}
	return nil
}

func (c *change) repair(ctx context.Context, text []byte) error {
	i := &c.row.Instance
	state, version, err := stateOf(c.def, i, text)
	if err != nil {
		return err
	}
	keeps, err := c.keeps(ctx)
	if err != nil {
		return err
	}
	page, err := c.record(ctx, history.Repaired, keeps.kept(state))
	if err != nil {
		return err
	}
	before := map[string]any{"version": i.Version, "state": keeps.public(i.State)}
	after := map[string]any{"version": i.Version + 1, "state": keeps.public(state)}
	i.State, i.StateVersion = state, version
	if err := c.save(ctx, persistence.Update, page); err != nil {
		return err
	}
	return c.note(ctx, "saga.repair", before, after)
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
		return nil, 0, fmt.Errorf("%w: version %d, and this program has %d", saga.ErrNewerState, i.StateVersion,
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
		return nil, errors.New("text follows the value")
	}
	return json.Marshal(into.Interface())
}
