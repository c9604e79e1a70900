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

// ReadState decodes the state of i into into, a pointer to the state type of d, upgraded to the current version. It
// also decodes a remembered instance. It returns saga.ErrState or saga.ErrNewerState if the state cannot be decoded.
func ReadState(d *saga.Definition, i saga.Instance, into any) error {
	i.Pending = nil // because Open does not decode the state of a remembered instance
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
