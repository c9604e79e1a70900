package persistence_test

import (
	"context"
	"testing"

	"github.com/edda-go/edda/persistence"
)

// If a start that waits for one key had already written others, and other starts waited for those, there would be a
// deadlock. Starts are written in the order of keys, so a waiting start has written no key after the one it waits for.
func TestStartThatWaitsHoldsNoLaterKey(t *testing.T) {
	t.Parallel()
	s := scene{t, postgresFixture(t, false)}
	holder, waiter, third := s.begin(), s.begin(), s.begin()
	s.won("the holder", holder.save(start(order("a", 1))), true)
	result := waiter.saveAside(start(order("b", 2)), start(order("a", 3)))
	s.store.blocked(t, waiter.tx)
	if _, err := third.tx.(postgresTx).tx.Exec(t.Context(), "SET LOCAL lock_timeout = '1s'"); err != nil {
		t.Fatal(err)
	}
	_, err := third.tx.Save(t.Context(), []persistence.Write{start(order("b", 4))})
	_ = third.tx.Rollback(context.WithoutCancel(t.Context())) // the waiter writes this key next
	holder.rollback()
	if err != nil {
		t.Fatalf("key b is held by a batch that waits for key a: %v", err)
	}
	s.won("the waiter", <-result, true, true)
	waiter.commit()
}
