package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// arrive ingests messages for an endpoint and returns the results.
func (w *world) arrive(endpoint string, messages ...outbox.IngestMessage) []outbox.IngestResult {
	w.t.Helper()
	arrived, err := w.bus.Ingest(w.t.Context(), outbox.IngestOptions{From: "payments", Endpoint: endpoint}, messages...)
	if err != nil {
		w.t.Fatal(err)
	}
	return arrived
}

// queueOf makes a queue as its owner does.
func (w *world) queueOf(name string) {
	w.t.Helper()
	b, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err == nil {
		err = b.InstallQueue(w.t.Context(), name)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// states returns the states of messages, as one text.
func states(arrived []outbox.IngestResult) string {
	var all []string
	for _, a := range arrived {
		all = append(all, a.State.String())
	}
	return strings.Join(all, " ")
}

func arrival(id string, body string) outbox.IngestMessage {
	return outbox.IngestMessage{ID: id, Kind: "order.shipped", Body: []byte(body)}
}

func TestIngestTakesEachIDOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	first, second := newID(t).String(), newID(t).String()
	if got := states(w.arrive("notes", arrival(first, "1"), arrival(second, "2"),
		arrival(first, "1"))); got != "accepted accepted repeated" {
		t.Error(got)
	}
	if got := states(w.arrive("notes", arrival(first, "1"), arrival("no uuid", "3"))); got != "repeated accepted" {
		t.Error(got)
	}
	if got := states(w.arrive("notes", arrival("no uuid", "3"), arrival("", "4"),
		arrival("", "4"))); got != "repeated accepted accepted" {
		t.Error(got)
	}
	m := arrival("no uuid either", "5")
	m.Header = map[string]string{"who": "me"}
	if got := states(w.arrive("notes", m)); got != "accepted" || len(m.Header) != 1 {
		t.Errorf("%s, and the caller's headers are %v", got, m.Header)
	}
	w.want(6, `SELECT count(*) FROM `+w.queue("notes"))
	w.want(1, `SELECT count(*) FROM `+w.queue("notes")+` WHERE id = '`+first+`' AND body = '1'`)
	w.want(1, `SELECT count(*) FROM `+w.queue("notes")+
		` WHERE convert_from(header, 'UTF8')::json ->> 'watermill-uuid' = 'no uuid'`)
}

// An id is unique within its source and endpoint: two endpoints that follow one topic must not lose messages to each
// other.
func TestIngestTellsSourcesAndEndpointsApart(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	w.queueOf("others")
	id := newID(t).String()
	for _, o := range []outbox.IngestOptions{
		{From: "a", Endpoint: "notes"}, {From: "b", Endpoint: "notes"}, {From: "a", Endpoint: "others"}, {From: "a"},
		{From: "b"},
	} {
		for n, want := range []string{"accepted", "repeated"} {
			arrived, err := w.bus.Ingest(t.Context(), o, arrival(id, "1"))
			if err != nil {
				t.Fatal(err)
			}
			if want == "accepted" && o.Endpoint == "" {
				want = "unwanted"
			}
			if got := states(arrived); got != want {
				t.Errorf("%+v, time %d: %s, want %s", o, n+1, got, want)
			}
		}
	}
	w.want(2, `SELECT count(*) FROM `+w.queue("notes"))
	w.want(1, `SELECT count(*) FROM `+w.queue("others"))
}

func TestIngestedEventGoesToItsSubscribers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for n, name := range []string{"one", "two", "three"} {
		w.queueOf(name)
		if n < 2 {
			w.exec(`INSERT INTO edda.subscription (kind, queue) SELECT 'order.shipped', id FROM edda.queue WHERE ` +
				`endpoint = '` + name + `'`)
		}
	}
	w.exec(`UPDATE edda.subscription_generation SET generation = generation + 1`)
	if got := states(w.arrive("", arrival(newID(t).String(), "1"),
		outbox.IngestMessage{ID: "7", Kind: "order.lost"})); got != "accepted unwanted" {
		t.Error(got)
	}
	for name, want := range map[string]int{"one": 1, "two": 1, "three": 0} {
		w.want(want, `SELECT count(*) FROM `+w.queue(name))
	}
}

// Ingest keeps a header with a name of the framework if this version has that name, and if it belongs to no database.
// It drops all other such headers, whatever their number and values.
func TestIngestLeavesNamesBehindThatDoNotCross(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	header := map[string]string{"edda-from": "orders", "edda-run": "no id", "edda-fire-due": "never", "color": "red"}
	for n := range 1000 {
		header[fmt.Sprint("edda-x", n)] = "x"
	}
	got := w.arrive("notes", outbox.IngestMessage{ID: newID(t).String(), Kind: "order.shipped", Header: header,
		Body: []byte("{}")})
	if states(got) != "accepted" {
		t.Error(got)
	}
	if got := w.text(`SELECT convert_from(header, 'UTF8') FROM ` +
		w.queue("notes")); got != `{"edda-from":"orders","color":"red"}` {
		t.Error(got)
	}
}

// A message that is not valid becomes a dead letter with its bytes, once, however often it is delivered, and its
// neighbours arrive.
func TestIngestThatIsNoMessageIsADeadLetter(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	used := newID(t).String()
	w.arrive("notes", arrival(used, "the first"))
	bad := map[string]outbox.IngestMessage{
		"no kind":    {ID: newID(t).String(), Body: []byte("no kind")},
		"bad kind":   {ID: newID(t).String(), Kind: "Order Shipped\x00\xff", Body: []byte("bad kind")},
		"large body": {ID: newID(t).String(), Kind: "order.shipped", Body: []byte(strings.Repeat("x", 1<<20+1))},
		"header not UTF-8": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"color": "\xffred"}, Body: []byte("header not UTF-8")},
		"header with NUL": {ID: newID(t).String(), Kind: "order.shipped", Header: map[string]string{"color": "\x00"},
			Body: []byte("header with NUL")},
		"large header": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"color": strings.Repeat("x", 8<<10+1)}, Body: []byte("large header")},
		"id not UTF-8": {ID: "\xff\x00", Kind: "order.shipped", Body: []byte("id not UTF-8")},
		"id too long":  {ID: strings.Repeat("7", 9000), Kind: "order.shipped", Body: []byte("id too long")},
		"newer envelope": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"edda-version": "2"}, Body: []byte("newer envelope")},
		"broken envelope": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"Edda-Instance": "7"}, Body: []byte("broken envelope")},
		"a timeout": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"edda-intent": "timeout"}, Body: []byte("a timeout")},
		"a sender's name": {ID: newID(t).String(), Kind: "order.shipped",
			Header: map[string]string{"edda-from": "Not A Name"}, Body: []byte("a sender's name")},
		"id of another one": {ID: used, Kind: "order.shipped", Body: []byte("id of another one")},
	}
	for range 3 {
		var all []outbox.IngestMessage
		var names []string
		for name, m := range bad {
			all, names = append(all, m), append(names, name)
		}
		good := newID(t).String()
		for n, a := range w.arrive("notes", append(all, arrival(good, "good"))...) {
			switch {
			case n == len(all):
				if a.State != outbox.Accepted {
					t.Errorf("a good one among bad ones: %v", a)
				}
			case a.State == outbox.IngestDead && a.Err == nil:
				t.Errorf("%s: dead without a reason", names[n])
			case a.State != outbox.IngestDead && a.State != outbox.Repeated:
				t.Errorf("%s: %v", names[n], a)
			case names[n] == "id of another one" && a.State == outbox.IngestDead && !errors.Is(a.Err,
				bus.ErrIDConflict):
				t.Errorf("%s: %v", names[n], a.Err)
			}
		}
	}
	w.want(4, `SELECT count(*) FROM `+w.queue("notes"))
	w.want(len(bad), `SELECT count(*) FROM edda.dead_letter WHERE endpoint = 'notes'`)
	for name, m := range bad {
		var found int
		if err := w.pool.QueryRow(t.Context(),
			w.sql(`SELECT count(*) FROM edda.dead_letter WHERE body = $1 AND convert_from(header,
				'UTF8')::json IS NOT NULL`), m.Body).Scan(&found); err != nil || found != 1 {
			t.Errorf("%s: %d letters have its bytes: %v", name, found, err)
		}
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE body = 'header not UTF-8' AND convert_from(header,
		'UTF8') = E'{"color":"\\\\xffred"}'`)
}

// A dead letter that no queue can hold could not be retried: Ingest refuses such a message, and the sender keeps it.
func TestIngestRefusesWhatNoQueueHolds(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	for says, m := range map[string]outbox.IngestMessage{
		"body has 16777217 bytes, limit 16777216": {ID: "1", Kind: "note", Body: make([]byte, 16<<20+1)},
		"headers have 2097160 bytes, limit 2097152": {ID: "2", Kind: "note", Header: map[string]string{
			"all": strings.Repeat("x", 2<<20)}},
	} {
		_, err := w.bus.Ingest(t.Context(), outbox.IngestOptions{From: "a", Endpoint: "notes"}, arrival("3", "fits"), m)
		if !errors.Is(err, saga.ErrTooLarge) || !strings.Contains(err.Error(), "message 2 of 2: its ") ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	w.want(0, `SELECT count(*) FROM `+w.queue("notes"))
	largest := outbox.IngestMessage{ID: "4", Kind: "note", Body: make([]byte, 16<<20)}
	if got := w.arrive("notes", largest); got[0].State != outbox.IngestDead || !strings.Contains(got[0].Err.Error(),
		"limit 1048576") {
		t.Errorf("a body of 16 MiB: %+v", got)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE octet_length(body) = 16777216`)
}

// An event that is not a valid message becomes a dead letter for each of its subscribers, so that each can retry it.
// Without a subscriber it becomes one dead letter.
func TestIngestedEventThatIsNoMessageIsALetterToEachSubscriber(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for _, name := range []string{"one", "two", "three"} {
		w.queueOf(name)
	}
	w.exec(`INSERT INTO edda.subscription (kind, queue) SELECT 'order.shipped', id FROM edda.queue
		WHERE endpoint IN ('one', 'two')`)
	w.exec(`UPDATE edda.subscription_generation SET generation = generation + 1`)
	wanted := arrival("7", strings.Repeat("x", 1<<20+1))
	unwanted := wanted
	unwanted.ID, unwanted.Kind = "8", "order.lost"
	if got := states(w.arrive("", wanted, unwanted)); got != "dead dead" {
		t.Error(got)
	}
	if got := w.text(`SELECT string_agg(endpoint || ' ' || kind, ', ' ORDER BY endpoint) FROM edda.dead_letter
		`); got != "ingest order.lost, one order.shipped, two order.shipped" {
		t.Errorf("letters to %s", got)
	}
}

// Each message that comes with the id of an earlier message becomes a separate dead letter, once for each content.
func TestEachContentUnderOneIDIsALetter(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	for n, want := range []string{"accepted dead dead repeated dead", "repeated repeated repeated repeated repeated"} {
		if got := states(w.arrive("notes", arrival("7", "1"), arrival("7", "2"), arrival("7", "3"), arrival("7", "2"),
			outbox.IngestMessage{ID: "7", Kind: "order.lost", Body: []byte("1")})); got != want {
			t.Errorf("time %d: %s, want %s", n+1, got, want)
		}
	}
	if got := w.text(`SELECT string_agg(convert_from(body, 'UTF8') || ' ' || kind, ', ' ORDER BY body, kind)
		FROM edda.dead_letter`); got != "1 order.lost, 2 order.shipped, 3 order.shipped" {
		t.Errorf("letters: %s", got)
	}
}

func TestIngestRefusesWhatTheCallerCanMend(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for name, o := range map[string]outbox.IngestOptions{
		"From: a source of 0 bytes, want 1 to 255": {Endpoint: "notes"},
		"From: a source of 256 bytes":              {From: strings.Repeat("x", 256)},
		"has a control character":                  {From: "a\nb"},
		`Endpoint "Notes": name of 5 bytes`:        {From: "a", Endpoint: "Notes"},
		`edda migrate install notes`:               {From: "a", Endpoint: "notes"},
		saga.ErrInvalidText.Error():                {From: "a\xff"},
	} {
		if _, err := w.bus.Ingest(t.Context(), o, arrival("1", "")); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want %s", o, err, name)
		}
	}
	_, err := w.bus.Ingest(t.Context(), outbox.IngestOptions{From: "a", Endpoint: "notes"}, arrival("1", ""))
	if !errors.Is(err, bus.ErrNotInstalled) {
		t.Error(err)
	}
	w.want(0, `SELECT count(*) FROM edda.inbox`)
	w.queueOf("notes") // this bus finds it by itself
	w.arrive("notes", arrival("1", ""))
}

// Messages keep their order in the queue.
func TestIngestsKeepTheirOrder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	var all []outbox.IngestMessage
	for n := range 300 {
		all = append(all, arrival(newID(t).String(), fmt.Sprintf("%04d", n)))
	}
	w.arrive("notes", all...)
	w.want(0, `SELECT count(*) FROM (SELECT body, lag(body) OVER (ORDER BY due, id) AS before FROM `+w.queue("notes")+
		`) o WHERE before > body`)
}
