package audit_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The examples share a Postgres, an endpoint "payments", and the check of errors.
func openPayments() (ctx context.Context, pool *pgxpool.Pool, operator *operate.Operator, end func()) {
	ctx, pool, end = pgtest.Example()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	check(operator.Queues().Install(ctx, "payments", "card.charge"))
	return ctx, pool, operator, end
}

var check = pgtest.Must

// Changes that are made with a context have its actor and its reason.
func ExampleAs() {
	ctx, pool, operator, end := openPayments()
	defer end()
	ctx = audit.As(ctx, audit.Actor{Name: "ann@example.com", From: "10.0.0.7"})
	ctx = audit.Because(ctx, "the bank is down")
	check(operator.Limits().Set(ctx, "payments", 2))

	log, err := audit.New(pool, "")
	check(err)
	entries, err := log.List(ctx, audit.Filter{Target: "payments"})
	check(err)
	for _, e := range entries {
		fmt.Println(e.By(), e.Verb, e.Target, "because", e.Reason)
	}
	// Output: ann@example.com limit.set payments because the bank is down
}

// A Log lists the changes, the newest first.
func ExampleNew() {
	ctx, pool, operator, end := openPayments()
	defer end()
	check(operator.Endpoints().Pause(ctx, "payments", "the bank is down"))
	check(operator.Endpoints().Resume(ctx, "payments"))

	log, err := audit.New(pool, "")
	check(err)
	entries, err := log.List(ctx, audit.Filter{Verb: "endpoint"})
	check(err)
	for _, e := range entries {
		fmt.Println(e.Verb, e.Target)
	}
	// Output:
	// endpoint.resume payments
	// endpoint.pause payments
}
