package main

import (
	"testing"

	"github.com/edda-go/edda/sagatest"
)

// A saga alone needs no Postgres, and has a clock that the test moves.

func TestOrderIsPaid(t *testing.T) {
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	ask := ChargeCard{Cents: 1990}
	if sent := r.Sent(); len(sent) != 1 || sent[0] != ask {
		t.Errorf("the order sent %v, want %v", sent, ask)
	}
	if err := r.Reply(ask, CardCharged{Receipt: "1"}); err != nil || r.Live("7") {
		t.Errorf("a paid order is not complete: %v", err)
	}
}

func TestOrderIsNotPaid(t *testing.T) {
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if err := r.Advance(payWithin); err != nil || r.Live("7") {
		t.Errorf("an order without an answer goes on: %v", err)
	}
}
