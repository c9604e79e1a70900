package whereabouts_test

import (
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/saga"
)

// Messages that are read together have the same places as when each is read alone.
func TestSeveralMessagesAreFoundAtOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.endpoint("notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	stop := w.start("cards", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, pay) error { return nil }))
	handled, waits, unknown := w.send(pay{Order: "7"}), w.send(note{N: 1}), saga.ID{7: 1}
	w.is(handled, "handled: cards handled it at TIME.")
	stop()
	got, err := w.see.Messages(t.Context(), history.Message{ID: unknown}, history.Message{ID: waits},
		history.Message{ID: handled})
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for n, id := range []saga.ID{unknown, waits, handled} {
		if alone := w.message(id); !reflect.DeepEqual(says(&got[n]), says(&alone)) || got[n].ID != id {
			t.Errorf("message %d is %q, and %q by itself", n, says(&got[n]), says(&alone))
		}
	}
	if none, err := w.see.Messages(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("no messages are %+v, %v", none, err)
	}
}

// A process is listed while it runs an endpoint, and for a while afterwards.
func TestProcessesAreThoseThatRunEndpoints(t *testing.T) {
	w := newWorld(t, bus.Options{})
	if none, err := w.see.Processes(t.Context()); err != nil || len(none) != 0 {
		t.Fatalf("before the first endpoint there are %+v, %v", none, err)
	}
	stop := w.start("cards", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, pay) error { return nil }))
	var p whereabouts.Process
	is := func(ok func() bool) func() bool {
		return func() bool {
			all, err := w.see.Processes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				return false
			}
			p = all[0]
			return ok()
		}
	}
	runs := func() bool { return p.Lives && slices.Equal(p.Endpoints, []string{"cards"}) }
	w.until("the process runs cards", is(runs))
	w.exec(`UPDATE edda.session SET started = started - interval '1 hour'`)
	is(runs)()
	if host, _ := os.Hostname(); p.Host != host || p.PID != os.Getpid() || p.Started.IsZero() ||
		p.Renewed.Sub(p.Started) < time.Hour || !p.Ended.IsZero() || p.Died {
		t.Errorf("the process is %+v", p)
	}
	stop()
	w.until("it has ended", is(func() bool { return !p.Lives && !p.Ended.IsZero() && !p.Died }))
}
