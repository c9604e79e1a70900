package limit_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

const lockNotAvailable = "55P03"

// hurry bounds the lock waits of a transaction.
func (w *world) hurry(tx pgx.Tx, patience string) {
	w.t.Helper()
	if _, err := tx.Exec(w.t.Context(), "SELECT set_config('lock_timeout', $1, true)", patience); err != nil {
		w.t.Fatal(err)
	}
}

// The first read of a slot takes the lock that the release of the slot needs. Two finishes that shared a weaker lock
// until then would wait for each other.
func TestSecondFinishWaitsForTheFirst(t *testing.T) {
	w := open(t)
	w.set(1)
	slots := w.gets("a", 1, 1)
	first, second := w.begin(), w.begin()
	if !w.held(first, slots[0])[0] {
		t.Fatal("the slot is not held")
	}
	w.hurry(second, "50ms")
	if held, err := w.store.Held(t.Context(), second, slots); pgerr.Code(err) != lockNotAvailable {
		t.Errorf("the second finish was told %v, %v beside the first", held, err)
	}
}

// A finish that waits for a slot holds no slot that comes after it. So no circle of waits arises.
func TestFinishThatWaitsHoldsNoLaterSlot(t *testing.T) {
	w := open(t)
	w.set(3)
	slots := w.gets("a", 3, 3)
	slices.SortFunc(slots, func(a, b limit.Slot) int { return cmp.Compare(a.No, b.No) })
	holder, waiter, third := w.begin(), w.begin(), w.begin()
	if !w.held(holder, slots[1])[0] {
		t.Fatal("the slot is not held")
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.store.Held(context.WithoutCancel(t.Context()), waiter, []limit.Slot{slots[2], slots[1], slots[0]})
		done <- err
	}()
	pgtest.AwaitBlocked(t, w.pool.Pool, waiter.Conn())
	w.hurry(third, "1s")
	_, err := w.store.Held(t.Context(), third, slots[2:])
	_ = third.Rollback(t.Context()) // the waiting transaction locks this slot next
	if err != nil {
		t.Errorf("slot 3 is locked by a finish that waits for slot 2: %v", err)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
