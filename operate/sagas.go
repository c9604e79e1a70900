package operate

import (
	"context"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/persistence"
)

// Sagas has the methods for saga instances and the counters of sagas.
type Sagas struct{ o *Operator }

// Sagas returns the methods for sagas.
func (o *Operator) Sagas() Sagas { return Sagas{o} }

// Instances lists living saga instances in the order of saga and key, without their states. It is for pages and tools:
// it reads at most one page of an index and neither locks nor waits; the answer may be out of date when it arrives.
func (s Sagas) Instances(ctx context.Context, options persistence.ListOptions) ([]persistence.Listed, error) {
	listed, err := s.o.sagas.List(ctx, s.o.pool, options)
	return listed, pgerr.Explain(err)
}

// Show reads the living instance of a saga's key, with its state as it is stored. It does not need the saga's
// definition; a program that has the definition reads the instance with bus.Bus.Instance. ok is false if none lives.
func (s Sagas) Show(ctx context.Context, name, key string) (i persistence.Listed, ok bool, err error) {
	i, ok, err = s.o.sagas.Show(ctx, s.o.pool, name, key)
	return i, ok, pgerr.Explain(err)
}
