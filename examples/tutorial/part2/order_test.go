// page test

package main

import (
	"testing"

	"github.com/edda-go/edda/sagatest"
)

func TestOrderAsksForItsMoney(t *testing.T) {
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	ask := ChargeCard{Cents: 1990}
	if sent := r.Sent(); len(sent) != 1 || sent[0] != ask {
		t.Errorf("the order sent %v, want %v", sent, ask)
	}
	if err := r.Reply(ask, CardCharged{Cents: 1990}); err != nil || r.Live("7") {
		t.Errorf("a paid order is not complete: %v", err)
	}
}

func TestOrderIsPlacedOnce(t *testing.T) {
	r := sagatest.New(t, Orders)
	for range 2 {
		if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
			t.Fatal(err)
		}
	}
	if sent := r.Sent(); len(sent) != 1 {
		t.Errorf("the order sent %v, want one message", sent)
	}
}

// end
