package saga_test

import (
	_ "embed"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/edda-go/edda/saga"
)

// A step reads and writes its state and sends messages. Its context gives it no access to I/O: no transaction, no
// client, no file.
func TestContextReachesNothingOutside(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[*saga.Context]()
	harmless := []string{"", "context", "time", of.Elem().PkgPath()} // the first is for predeclared types
	for n := range of.Elem().NumField() {
		if f := of.Elem().Field(n); f.IsExported() {
			t.Errorf("Context.%s is there for handlers", f.Name)
		}
	}
	for n := range of.NumMethod() {
		m := of.Method(n)
		for i := range m.Type.NumOut() {
			result := m.Type.Out(i)
			for result.Name() == "" && slices.Contains(
				[]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan, reflect.Map},
				result.Kind()) {
				result = result.Elem()
			}
			if !slices.Contains(harmless, result.PkgPath()) {
				t.Errorf("Context.%s returns a %v", m.Name, result)
			}
		}
	}
}

//go:embed define.go
var definitions string

func TestEachStoreSaysHowItKeepsStepsApart(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		`(?m)^\tPessimistic Store = iota // the row is locked while a step runs; the zero value is the default$`,
		`(?m)^\tOptimistic +// the version is compared when the step is written$`,
	} {
		if !regexp.MustCompile(says).MatchString(definitions) {
			t.Errorf("define.go has no line %s", says)
		}
	}
}
