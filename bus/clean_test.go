package bus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
)

func (w *world) oldIDs(n int) {
	w.exec(`INSERT INTO edda.sent_id (id, sum, at) SELECT gen_random_uuid(), E'\\x00', now() - interval '8 days' FROM generate_series(1, $1)`, n)
}

// A clean-up that deletes a fixed number of rows every ten minutes never ends where a service adds more than that.
func TestCleanUpGoesOnWhileThereIsMuchToDelete(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.oldIDs(120_500)
	w.exec(`INSERT INTO edda.sent_id (id, sum) VALUES (gen_random_uuid(), E'\\x00')`)
	bus.CleanNow(t.Context(), w.bus)
	if left := w.count("SELECT count(*) FROM edda.sent_id"); left != 1 {
		t.Errorf("after a clean-up %d ids are left, want the one that is new", left)
	}
}

// A session that somebody forgot in a transaction keeps a ring from turning, so that ids or copies are kept without end.
func TestARingThatASessionHoldsIsTold(t *testing.T) {
	w := newWorld(t, bus.Options{})
	log := &kept{}
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger()})
	w.exec(`UPDATE edda.ring SET since = now() - interval '1 year' WHERE name = 'inbox'`)
	forgotten := w.begin()
	w.execTx(forgotten, w.sql(`SELECT FROM edda.inbox_1`))
	bus.CleanNow(t.Context(), b)
	want := fmt.Sprintf("process %d", forgotten.Conn().PgConn().PID())
	if text := log.String(); strings.Count(text, "old rows were not deleted") != 1 || !strings.Contains(text, "table=inbox") || !strings.Contains(text, want) {
		t.Errorf("the log says %q, want %q in one line of the inbox", text, want)
	}
	w.want(0, `SELECT slot FROM edda.ring WHERE name = 'inbox'`)
}

// A hundred processes need not do what one of them has just done.
func TestProcessesTakeTurnsToCleanUp(t *testing.T) {
	w := newWorld(t, bus.Options{})
	first, second := w.newBus(bus.Options{Schema: w.schema}), w.newBus(bus.Options{Schema: w.schema})
	for n, turn := range []struct {
		process *bus.Bus
		cleans  bool
	}{{first, true}, {second, false}, {first, false}, {nil, false}, {second, true}} {
		if turn.process == nil {
			w.exec(`UPDATE edda.lease SET expires = now() WHERE name = 'clean'`)
			continue
		}
		w.oldIDs(1)
		bus.CleanInTurnNow(t.Context(), turn.process)
		if left := w.count("SELECT count(*) FROM edda.sent_id"); left == 0 != turn.cleans {
			t.Errorf("turn %d: the process cleaned up: %v, want %v", n, left == 0, turn.cleans)
		}
	}
}
