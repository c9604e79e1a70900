package persistence

import (
	"fmt"
	"reflect"

	"github.com/edda-go/edda/saga"
)

// CheckInto returns an error unless into is nil, or a pointer to the state type of d.
func CheckInto(d *saga.Definition, into any) error {
	if into != nil && reflect.TypeOf(into) != reflect.PointerTo(d.StateType()) {
		return fmt.Errorf("read saga %s: its state goes into a *%v, not a %T", d.Name(), d.StateType(), into)
	}
	return nil
}

// ReadState decodes the state of i into into, a pointer to the state type of d, upgraded to the current version. Also
// of an instance that is remembered. Errors: saga.ErrState and saga.ErrNewerState.
func ReadState(d *saga.Definition, i saga.Instance, into any) error {
	i.Pending = nil // else one that is remembered is not decoded
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
