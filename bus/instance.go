package bus

import (
	"context"
	"fmt"
	"reflect"

	"github.com/edda-go/edda/saga"
)

// Instance reads the live instance of d with this key, and its state into into, a pointer to the state type of d; nil
// reads no state. ok is false when there is none. It is for pages and tools: it neither locks nor waits, and the
// answer may be old when it arrives. A state of an older version is brought up to today's first.
//
// Errors: saga.ErrState and saga.ErrNewerState for a state that this program cannot read; i is valid then.
func (b *Bus) Instance(ctx context.Context, d *saga.Definition, key string, into any) (i saga.Instance, ok bool,
	err error) {
	if into != nil && reflect.TypeOf(into) != reflect.PointerTo(d.StateType()) {
		return saga.Instance{}, false, fmt.Errorf("read saga %s: its state goes into a *%v, not a %T", d.Name(),
			d.StateType(), into)
	}
	i, ok, err = b.sagas.Read(ctx, b.pool, d.Name(), key)
	if err != nil || !ok || into == nil {
		return i, ok, err
	}
	return i, true, readState(d, i, into)
}

// readState reads the state of i into into, brought up to today's version.
func readState(d *saga.Definition, i saga.Instance, into any) error {
	if reflect.TypeOf(into) != reflect.PointerTo(d.StateType()) {
		return fmt.Errorf("read saga %s: its state goes into a *%v, not a %T", d.Name(), d.StateType(), into)
	}
	session, err := d.Open(i)
	if err != nil {
		return err
	}
	now, err := session.Instance()
	if err == nil {
		err = saga.JSON.Decode(now.State, into)
	}
	if err != nil {
		return fmt.Errorf("read saga %s/%s: %w", d.Name(), i.Key, err)
	}
	return nil
}
