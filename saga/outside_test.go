package saga_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/edda-go/edda/saga"
)

// A step reads and writes its state and sends messages. Its context lends it nothing that does I/O: no transaction, no client, no file.
func TestContextReachesNothingOutside(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[*saga.Context]()
	harmless := []string{"", "context", "time", of.Elem().PkgPath()} // the first is for types that the language has
	for n := range of.Elem().NumField() {
		if f := of.Elem().Field(n); f.IsExported() {
			t.Errorf("Context.%s is there for handlers", f.Name)
		}
	}
	for n := range of.NumMethod() {
		m := of.Method(n)
		for i := range m.Type.NumOut() {
			result := m.Type.Out(i)
			for result.Name() == "" && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan, reflect.Map}, result.Kind()) {
				result = result.Elem()
			}
			if !slices.Contains(harmless, result.PkgPath()) {
				t.Errorf("Context.%s returns a %v", m.Name, result)
			}
		}
	}
}
