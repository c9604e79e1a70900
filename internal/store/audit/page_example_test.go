package audit_test

import (
	"context"

	"github.com/edda-go/edda/operate"
)

func page(ctx context.Context, operator *operate.Operator) error {
	// page actor
	ctx = operate.WithActor(ctx, operate.Actor{Name: "ann@example.com", From: "10.0.0.7"})
	ctx = operate.WithReason(ctx, "the bank is down")
	return operator.Limits().Set(ctx, "payments", 2)
	// end
}

// The code of the page runs.
func (o *office) page() error { return page(o.Context(), o.op) }
