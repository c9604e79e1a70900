package instances_test

import (
	"context"
	"errors"
	"testing"

	"github.com/edda-go/edda/operate/instances"
	"github.com/edda-go/edda/saga"
)

func page(ctx context.Context, o *instances.Operator, orders *saga.Definition, state []byte) error {
	// page repair
	_, err := o.Repair(ctx, instances.Repair{
		Saga: "order", Key: "2026-0007", Version: 3, State: state, Definition: orders, Reason: "the total was lost",
	})
	return err
	// end
}

// The code on the page compiles and runs.
func TestPage(t *testing.T) {
	w := newWorld(t, saga.Options{})
	if err := page(t.Context(), w.op, w.def, []byte(`{}`)); !errors.Is(err, instances.ErrNotFound) {
		t.Errorf("no such order: %v", err)
	}
}
