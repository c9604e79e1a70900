package operate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

func page(ctx context.Context, o *operate.Operator, orders *saga.Definition, state []byte) error {
	// page repair
	order := operate.Target{
		Saga: "order", Key: "2026-0007", Version: 3, Definition: orders, Reason: "the total was lost",
	}
	_, _, err := o.Instances().Repair(ctx, order, state)
	return err
	// end
}

// The code on the page compiles and runs.
func TestPage(t *testing.T) {
	t.Parallel()
	o, _, _ := installed(t)
	if err := page(t.Context(), o, Orders, []byte(`{}`)); !errors.Is(err, operate.ErrNoInstance) {
		t.Errorf("no such order: %v", err)
	}
}
