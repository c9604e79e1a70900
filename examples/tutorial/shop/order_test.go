package main

import (
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
)

// ask is what an order of 1990 cents sends first, and back gives the money back.
var (
	ask  = ChargeCard{Cents: 1990, Currency: euro}
	back = RefundCard{Cents: 1990, Currency: euro}
)

// placed returns a run with one order, which has asked for its money.
func placed(t *testing.T) *sagatest.Run {
	t.Helper()
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if sent := r.Sent(); len(sent) != 1 || sent[0] != ask {
		t.Fatalf("the order sent %v, want %v", sent, ask)
	}
	return r
}

func TestOrderIsPlacedOnce(t *testing.T) {
	r := placed(t)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if sent := r.Sent(); len(sent) != 0 {
		t.Errorf("the second click sent %v, want nothing", sent)
	}
}

func TestPaidOrderIsShipped(t *testing.T) {
	r := placed(t)
	if err := r.Reply(ask, CardCharged{Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	waits := r.Pending("7")
	if len(waits) != 1 || waits[0].Name != "shipping" {
		t.Errorf("a paid order waits for %v, want the shipping", waits)
	}
	if err := r.Advance(shipAfter); err != nil || r.Live("7") {
		t.Errorf("the order is not complete after %v: %v", shipAfter, err)
	}
}

func TestCustomerCancels(t *testing.T) {
	r := placed(t)
	if err := r.Reply(ask, CardCharged{Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if err := r.Deliver(CancelOrder{Order: "7"}); err != nil || r.Live("7") {
		t.Errorf("a cancelled order is not complete: %v", err)
	}
	if sent := r.Sent(); len(sent) != 1 || sent[0] != back {
		t.Errorf("the order was cancelled and sent %v, want %v", sent, back)
	}
}

func TestOrderIsCancelledInTime(t *testing.T) {
	r := placed(t)
	if err := r.Advance(payWithin - time.Second); err != nil || !r.Live("7") {
		t.Errorf("the order ended too early: %v", err)
	}
	if err := r.Advance(time.Second); err != nil || r.Live("7") {
		t.Errorf("the order is not complete after %v: %v", payWithin, err)
	}
	if err := r.Reply(ask, CardCharged{Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if sent := r.Sent(); len(sent) != 1 || sent[0] != back {
		t.Errorf("late money: the order sent %v, want %v", sent, back)
	}
}

func TestOldOrderIsShipped(t *testing.T) {
	r := sagatest.New(t, Orders)
	r.Given("7", 1, `{"cents":1990,"paid":false}`) // as a program of version 1 has stored it
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if o := sagatest.State[Order](r, "7"); o != (Order{Cents: 1990, Currency: euro}) {
		t.Errorf("the order is %+v", o)
	}
}
