package operate

import (
	"context"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/persistence"
)

// Instances lists living saga instances in the order of saga and key, without their states. It is for pages and tools:
// it reads at most one page of an index, neither locks nor waits, and the answer may be old when it arrives.
func (o *Operator) Instances(ctx context.Context, options persistence.ListOptions) ([]persistence.Listed, error) {
	listed, err := o.sagas.List(ctx, o.pool, options)
	return listed, pg.Explain(err)
}

// ShowInstance reads the living instance of a saga's key with its state, as it is stored, in a program that may not
// have the saga's definition; one that has reads it with Instance. ok is false when there is none.
func (o *Operator) ShowInstance(ctx context.Context, name, key string) (i persistence.Listed, ok bool, err error) {
	i, ok, err = o.sagas.Show(ctx, o.pool, name, key)
	return i, ok, pg.Explain(err)
}
