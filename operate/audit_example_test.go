package operate_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
)

// The examples of the audit share a Postgres and an endpoint "payments".
func openPayments() (ctx context.Context, operator *operate.Operator, end func()) {
	ctx, pool, end := pgtest.Example()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	check(operator.Queues().Install(ctx, "payments", "card.charge"))
	return ctx, operator, end
}

// Changes that are made with a context have its actor and its reason.
func ExampleWithActor() {
	ctx, operator, end := openPayments()
	defer end()
	ctx = operate.WithActor(ctx, operate.Actor{Name: "ann@example.com", From: "10.0.0.7"})
	ctx = operate.WithReason(ctx, "the bank is down")
	check(operator.Limits().Set(ctx, "payments", 2))

	entries, err := operator.Audit(ctx, operate.AuditFilter{Target: "payments"})
	check(err)
	for _, e := range entries {
		fmt.Println(e.By(), e.Verb, e.Target, "because", e.Reason)
	}
	// Output: ann@example.com limit.set payments because the bank is down
}

// Audit lists the changes, the newest first.
func ExampleOperator_Audit() {
	ctx, operator, end := openPayments()
	defer end()
	check(operator.Endpoints().Pause(ctx, "payments", "the bank is down"))
	check(operator.Endpoints().Resume(ctx, "payments"))

	entries, err := operator.Audit(ctx, operate.AuditFilter{Verb: "endpoint"})
	check(err)
	for _, e := range entries {
		fmt.Println(e.Verb, e.Target)
	}
	// Output:
	// endpoint.resume payments
	// endpoint.pause payments
}
