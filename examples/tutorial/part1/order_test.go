// page test

package main

import (
	"testing"

	"github.com/edda-go/edda/sagatest"
)

func TestOrderIsPlaced(t *testing.T) {
	r := sagatest.New(t, Orders)
	if err := r.Deliver(PlaceOrder{Order: "7", Cents: 1990}); err != nil {
		t.Fatal(err)
	}
	if o := sagatest.State[Order](r, "7"); o.Cents != 1990 {
		t.Errorf("the order has %d cents, want 1990", o.Cents)
	}
}

// end
