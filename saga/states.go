package saga

import (
	"context"
	"fmt"
	"reflect"
)

// InstanceReader reads instances of sagas: a *bus.Bus, or a *memory.Bus.
type InstanceReader interface {
	// Instance reads the live instance with this key, and decodes its state into a pointer to the state type of d. ok
	// is false if there is no instance.
	Instance(ctx context.Context, d *Definition, key string, into any) (i Instance, ok bool, err error)
}

// States reads the states of a saga as values of their type, outside of its handlers. Make one with StatesOf, next to
// the definition:
//
//	var Orders = saga.Define("order", …)
//	var orders = saga.StatesOf[Order](Orders)
//
// It is safe for concurrent use.
type States[S any] struct{ def *Definition }

// StatesOf returns the reader of the states of d. It panics unless S is their type: that is a mistake in the program,
// and a package variable reveals it before main begins.
func StatesOf[S any](d *Definition) States[S] {
	if asked := reflect.TypeFor[S](); d.stateType != asked {
		panic(fmt.Sprintf("saga %q: StatesOf[%v]: its state is a %v", d.name, asked, d.stateType))
	}
	return States[S]{def: d}
}

// Read reads the state of the live instance with this key. ok is false if the key has no instance or the instance has
// completed. Read upgrades a state that an older program wrote. The result may be out of date when it arrives.
//
// Read returns the errors of the bus, and ErrState or ErrNewerState for a state that this program cannot read.
func (s States[S]) Read(ctx context.Context, from InstanceReader, key string) (state S, ok bool, err error) {
	_, ok, err = from.Instance(ctx, s.def, key, &state)
	return state, ok, err
}

// Decode returns the state of an instance that was read before: by a watch (bus.WatchEvent.Instance), a list, or a
// test. An instance that has completed and is remembered can be decoded too.
//
// Decode returns ErrState or ErrNewerState for a state that this program cannot read, and other errors for an
// instance of a different saga and for an instance without a state.
func (s States[S]) Decode(i Instance) (state S, err error) {
	if i.New || i.State == nil {
		return state, fmt.Errorf("decode saga %s: it has no state", nameOf(s.def.name, i.Key))
	}
	i.Pending = nil // because Open does not decode the state of a remembered instance
	session, err := s.def.Open(i)
	if err != nil {
		return state, err
	}
	return *session.state.(*S), nil
}
