package whereabouts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
)

// made returns an id of version 7 with this time.
func made(at time.Time, n byte) (id saga.ID) {
	ms := at.UnixMilli()
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	id[6], id[8], id[15] = 0x70, 0x80, n
	return id
}

// long makes the queue of notes longer than Near reads: n messages that were due a day ago, and n that are due in a
// day.
func (w *world) long(n int) {
	w.t.Helper()
	w.endpoint("notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	for _, due := range []string{"now() - interval '1 day'", "now() + interval '1 day'"} {
		pgtest.Exec(w.t, w.pool, `INSERT INTO `+w.schema+`.queue_1 (due, id, kind, header, body)
			SELECT `+due+` + n * interval '1 microsecond', gen_random_uuid(), 'note', '', '{}'
			FROM generate_series(1, $1::int) n`, n)
	}
}

func (w *world) put(id saga.ID, due time.Time) { w.putInto("queue_1", id, due) }

func (w *world) putInto(table string, id saga.ID, due time.Time) {
	w.t.Helper()
	pgtest.Exec(w.t, w.pool, `INSERT INTO `+w.schema+`.`+table+` (due, id, kind, header, body)
		VALUES ($1, $2, 'note', '', '{}')`, due, [16]byte(id))
}

// Near finds a message at either end of a long queue, at the time of its making, and at its known due time. For other
// messages it reports that it did not search everywhere, and a full reader finds them.
func TestNearFindsWhatIsDueWhenItIsKnownToBe(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.long(2_100)
	deep := time.Now().Add(-12 * time.Hour).UTC().Truncate(time.Microsecond)
	timer := time.Now().Add(36 * time.Hour).UTC().Truncate(time.Microsecond)
	head, soon, byID, byDue, hidden := saga.ID{1}, saga.ID{2}, made(deep, 3), saga.ID{4}, saga.ID{5}
	w.put(head, time.Now().Add(-48*time.Hour))
	w.put(soon, time.Now().Add(time.Minute))
	w.put(byID, deep.Add(2*time.Second))
	w.put(byDue, timer)
	w.put(hidden, timer.Add(time.Hour))
	known := []history.Message{{ID: head}, {ID: soon}, {ID: byID}, {ID: byDue, Due: timer}, {ID: hidden}}
	found, err := w.see.Near().Messages(t.Context(), known...)
	if err != nil {
		t.Fatal(err)
	}
	want := []whereabouts.State{whereabouts.Waiting, whereabouts.Delayed, whereabouts.Waiting, whereabouts.Delayed,
		whereabouts.Unknown}
	for n, m := range found {
		if len(m.Places) != 1 || m.Places[0].State != want[n] {
			t.Errorf("message %d is %q, want %s", n, says(&m), want[n])
		}
	}
	if text := found[4].Places[0].Says(); !strings.Contains(text, "The queue of notes is long") ||
		!strings.Contains(text, "edda history find "+hidden.String()) {
		t.Errorf("what was not looked for everywhere is %q", text)
	}
	all, err := w.see.Messages(t.Context(), known...)
	if err != nil || all[4].Places[0].State != whereabouts.Delayed {
		t.Errorf("the reader that reads all says %q, %v", says(&all[4]), err)
	}
}

// A single message is searched to the end of an index that is not large.
func TestNearReadsASmallIndexForOneMessage(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.long(2_100)
	id := saga.ID{5}
	w.put(id, time.Now().Add(36*time.Hour))
	m, err := w.see.Near().Message(t.Context(), id)
	if err != nil || m.Places[0].State != whereabouts.Delayed {
		t.Errorf("it is %q, %v", says(&m), err)
	}
	nobody, err := w.see.Near().Message(t.Context(), saga.ID{6})
	if err != nil || nobody.Known() || nobody.Places[0].Unread != "" {
		t.Errorf("a message that is nowhere is %q, %v", says(&nobody), err)
	}
}

// A message to one endpoint is searched in that queue alone, and a handled message in no queue.
func TestNearLooksWhereAMessageWasSent(t *testing.T) {
	w := newWorld(t, bus.Options{History: history.Options{Level: history.Steps}})
	w.endpoint("notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	stop := w.start("cards", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, pay) error { return nil }))
	handled := w.send(pay{Order: "7"})
	w.is(handled, "handled: cards handled it at TIME.")
	stop()
	there := time.Now().Add(time.Hour)
	w.putInto("queue_2", handled, there)
	other := saga.ID{8}
	w.put(other, there)
	found, err := w.see.Near().Messages(t.Context(), history.Message{ID: handled},
		history.Message{ID: other, Kind: note{}.Kind()})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []whereabouts.State{whereabouts.Handled, whereabouts.Delayed} {
		if got := found[n].Places[0].State; got != want {
			t.Errorf("message %d is %s, want %s", n, got, want)
		}
	}
	found, err = w.see.Near().Messages(t.Context(), history.Message{ID: other, To: "cards"},
		history.Message{ID: saga.ID{9}})
	if err != nil || found[0].Known() {
		t.Errorf("a message of cards was found in the queue of notes: %q, %v", says(&found[0]), err)
	}
}

// Many messages that one handler has sent are searched in one span.
func TestNearFindsManyMessagesOfOneMoment(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.long(2_100)
	deep := time.Now().Add(-12 * time.Hour).UTC().Truncate(time.Microsecond)
	var known []history.Message
	for n := range 60 {
		id := made(deep.Add(time.Duration(n)*time.Second), byte(n))
		w.put(id, deep.Add(time.Duration(n)*time.Second))
		known = append(known, history.Message{ID: id})
	}
	found, err := w.see.Near().Messages(t.Context(), known...)
	if err != nil {
		t.Fatal(err)
	}
	for n, m := range found {
		if m.Places[0].State != whereabouts.Waiting {
			t.Errorf("message %d is %q", n, says(&m))
		}
	}
}
