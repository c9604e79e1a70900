package event_test

import (
	"fmt"
	"testing"

	"github.com/edda-go/edda/event"
)

func TestTellCallsAll(t *testing.T) {
	if event.Tell() != nil || event.Tell(nil, nil) != nil {
		t.Error("no receivers make one")
	}
	told := ""
	to := func(name string) func(event.Event) {
		return func(e event.Event) { told += fmt.Sprintf("%s:%s ", name, e.(event.Resumed).Endpoint) }
	}
	event.Tell(nil, to("a"))(event.Resumed{Endpoint: "x"})
	event.Tell(to("a"), nil, to("b"), to("c"))(event.Resumed{Endpoint: "y"})
	if want := "a:x a:y b:y c:y "; told != want {
		t.Errorf("%q, want %q", told, want)
	}
}

// A panic of one receiver does not affect the others.
func TestTellGoesOnAfterAPanic(t *testing.T) {
	told := 0
	func() {
		defer func() {
			if v := recover(); v != "no such label" {
				t.Errorf("recovered %v, want the panic", v)
			}
		}()
		event.Tell(func(event.Event) { panic("no such label") }, func(event.Event) { told++ })(event.Resumed{})
	}()
	if told != 1 {
		t.Errorf("the second was called %d times, want 1", told)
	}
}
