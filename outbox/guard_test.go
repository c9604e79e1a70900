package outbox_test

import (
	"testing"

	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/outbox"
)

// A claim that waits for one id held others already, for which others waited in turn: a circle. In the order of the
// ids it holds none that comes after the one it waits for.
func TestClaimThatWaitsHoldsNoLaterID(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	holder, waiter, third := begin(t, pool), begin(t, pool), begin(t, pool)
	want(t, "the holder", claim(t, store, holder, given(1, "a")), outbox.Fresh)
	result := make(chan []outbox.Outcome, 1)
	go func() {
		outcomes, err := tryClaim(t.Context(), store, waiter, given(2, "b"), given(1, "a"))
		if err != nil {
			t.Error(err)
		}
		result <- outcomes
	}()
	pgtest.AwaitBlocked(t, pool, waiter.Conn())
	if _, err := third.Exec(t.Context(), "SET LOCAL lock_timeout = '1s'"); err != nil {
		t.Fatal(err)
	}
	outcomes, err := tryClaim(t.Context(), store, third, given(2, "b"))
	_ = holder.Rollback(t.Context())
	_ = third.Rollback(t.Context())
	if err != nil {
		t.Fatalf("the second id is held by a claim that waits for the first: %v", err)
	}
	want(t, "the third", outcomes, outbox.Fresh)
	want(t, "the waiter", <-result, outbox.Fresh, outbox.Fresh)
	commit(t, waiter)
}
