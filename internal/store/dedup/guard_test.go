package dedup_test

import (
	"testing"

	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/test/pgtest"
)

// A claim that waited for one id held others, and other claims waited for those: a circle. In the order of the ids it
// holds no id that comes after the one it waits for.
func TestClaimThatWaitsHoldsNoLaterID(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	holder, waiter, third := begin(t, pool), begin(t, pool), begin(t, pool)
	want(t, "the holder", claim(t, store, holder, given(1, "a")), dedup.Fresh)
	result := make(chan []dedup.Outcome, 1)
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
	want(t, "the third", outcomes, dedup.Fresh)
	want(t, "the waiter", <-result, dedup.Fresh, dedup.Fresh)
	commit(t, waiter)
}
