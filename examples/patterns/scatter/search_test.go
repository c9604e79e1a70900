package scatter

import (
	"testing"
	"time"

	"github.com/edda-go/edda/sagatest"
)

func TestSearchTakesTheBestOfThoseWhoAnswered(t *testing.T) {
	t.Parallel()
	desk := sagatest.New(t, Searches)
	if err := desk.Deliver(GetQuote{ID: "7", Article: "hat", Suppliers: []string{"a", "b", "c"}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Price{{Supplier: "a", Cents: 30}, {Supplier: "c", Cents: 20}} {
		if err := desk.Reply(AskSupplier{Supplier: p.Supplier, Article: "hat"}, p); err != nil {
			t.Fatal(err)
		}
	}
	if s := sagatest.State[Search](desk, "7"); len(s.Missing) != 1 || s.Best == nil || s.Best.Cents != 20 {
		t.Errorf("after two answers the search is %+v, want b missing and 20 the best", s)
	}
	if err := desk.Advance(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if desk.Live("7") {
		t.Error("the search goes on after its time is up")
	}
	late := Price{Supplier: "b", Cents: 10}
	if err := desk.Reply(AskSupplier{Supplier: "b", Article: "hat"}, late); err != nil {
		t.Fatal(err)
	}
	sent := desk.Sent()
	if quote, ok := sent[len(sent)-1].(Quote); !ok || quote.Best == nil || quote.Best.Cents != 20 {
		t.Errorf("the search ended with %+v, want the price 20", sent[len(sent)-1])
	}
}

// The last answer ends the search at once.
func TestSearchEndsWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	desk := sagatest.New(t, Searches)
	if err := desk.Deliver(GetQuote{ID: "7", Article: "hat", Suppliers: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	desk.Sent()
	if err := desk.Deliver(GetQuote{ID: "7", Article: "hat", Suppliers: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if again := desk.Sent(); len(again) > 0 {
		t.Errorf("a second request asks again: %v", again)
	}
	for _, supplier := range []string{"a", "b"} {
		if !desk.Live("7") {
			t.Fatalf("the search is over before %s has answered", supplier)
		}
		ask := AskSupplier{Supplier: supplier, Article: "hat"}
		if err := desk.Reply(ask, Price{Supplier: supplier, Cents: 20}); err != nil {
			t.Fatal(err)
		}
	}
	if desk.Live("7") {
		t.Error("the search goes on after the last answer")
	}
}
