package main

import (
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
)

func TestADayIsSettledOnce(t *testing.T) {
	t.Parallel()
	books := sagatest.New(t, settlements)
	start := Settle{Day: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)}
	if err := books.Deliver(start); err != nil {
		t.Fatal(err)
	}
	if err := books.Deliver(start); err != nil { // cron has fired twice
		t.Fatal(err)
	}
	if got := books.Sent(); len(got) != 1 || got[0] != (AddUp{Day: "2026-11-20"}) {
		t.Errorf("two starts of a day sent %v, want one question for its sum", got)
	}
	if err := books.Reply(AddUp{Day: "2026-11-20"}, Sum{Cents: 12}); err != nil {
		t.Fatal(err)
	}
	if got := books.Sent(); len(got) != 1 || got[0] != (PayOut{Day: "2026-11-20", Cents: 12}) {
		t.Errorf("the sum sent %v, want the payout of 12", got)
	}
	if books.Live("2026-11-20") {
		t.Error("a settled day is still alive")
	}
}
