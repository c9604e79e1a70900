package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgtest"
)

// The row records the holder of the lease, the begin of the term, and the time of its last renewal.
func TestRecordSaysWhoHoldsItSinceWhen(t *testing.T) {
	w := open(t)
	a := w.mustAcquire("a")
	begun := w.list()[0]
	if begun.Term != a || !begun.Held || begun.Acquired.After(begun.Renewed) ||
		begun.Expires.Sub(begun.Renewed).Round(time.Minute) != time.Hour {
		t.Errorf("a new term stands at %+v", begun)
	}
	if w.renew(a) != lease.Renewed {
		t.Fatal("the renewal was refused")
	}
	renewed := w.list()[0]
	if renewed.Term != a || !renewed.Acquired.Equal(begun.Acquired) || !renewed.Renewed.After(begun.Renewed) ||
		!renewed.Expires.After(begun.Expires) {
		t.Errorf("%+v after %+v: want a later renewal and end, and nothing else", renewed, begun)
	}
	w.expire()
	b := w.mustAcquire("b")
	if next := w.list()[0]; next.Term != b || b.Holder != "b" || b.Epoch != a.Epoch+1 ||
		!next.Acquired.After(renewed.Renewed) {
		t.Errorf("the next term stands at %+v after %+v", next, renewed)
	}
}

// Two processes bid for a new lease. One inserts the row; the other waits for it, and has lost.
func TestOfTwoFirstBidsOneCreates(t *testing.T) {
	w := open(t)
	first, second := w.begin(), w.begin()
	hour := func(holder string) lease.Bid { return lease.Bid{Name: "sweep", Holder: holder, Lease: time.Hour} }
	a, ok, err := w.store.Acquire(t.Context(), first, hour("a"))
	if err != nil || !ok {
		t.Fatalf("the first bid: %t, %v", ok, err)
	}
	won := make(chan bool, 1)
	go func() {
		_, ok, err := w.store.Acquire(context.WithoutCancel(t.Context()), second, hour("b"))
		if err != nil {
			t.Error(err)
		}
		won <- ok
	}()
	pgtest.AwaitBlocked(t, w.pool.Pool, second.Conn())
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if <-won {
		t.Error("both bids have won")
	}
	if err := second.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := w.list(); len(list) != 1 || list[0].Term != a {
		t.Errorf("the lease stands at %+v, want %+v", list, a)
	}
}
