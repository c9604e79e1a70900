package option

import (
	"errors"
	"fmt"
	"time"
)

// Faults collects the faults of a struct of options. The zero value has no fault.
type Faults struct{ all []error }

// Add adds a fault, unless it is nil.
func (f *Faults) Add(fault error) {
	if fault != nil {
		f.all = append(f.all, fault)
	}
}

// Err returns all faults as one error, or nil.
func (f *Faults) Err() error { return errors.Join(f.all...) }

// Int checks the option of that name, and replaces a zero by the standard.
func (f *Faults) Int(name string, value *int, standard, low, high int) {
	set(f, name, value, bounds[int]{standard, low, high})
}

// Duration checks the option of that name, and replaces a zero by the standard.
func (f *Faults) Duration(name string, value *time.Duration, standard, low, high time.Duration) {
	set(f, name, value, bounds[time.Duration]{standard, low, high})
}

type number interface{ int | time.Duration }

type bounds[V number] struct{ standard, low, high V }

func set[V number](f *Faults, name string, value *V, b bounds[V]) {
	if *value != 0 && (*value < b.low || *value > b.high) {
		f.Add(fmt.Errorf("%s is %v, want %v to %v (0 is the default, %v)", name, *value, b.low, b.high, b.standard))
	}
	Default(value, b.standard)
}

// Default replaces a zero by the standard.
func Default[V comparable](value *V, standard V) {
	var zero V
	if *value == zero {
		*value = standard
	}
}
