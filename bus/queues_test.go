package bus_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

func (w *world) queues() []operate.QueueInfo {
	w.t.Helper()
	infos, err := w.operator().Queues().List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return infos
}

func TestQueuesTellHowTheyStand(t *testing.T) {
	w := newWorld(t, bus.Options{})
	if infos := w.queues(); len(infos) != 0 {
		t.Errorf("without an endpoint: %+v", infos)
	}
	w.ledger()
	w.install("notes", w.notes())
	w.install("hears", bus.HandleTx(hears))
	for n := range 3 {
		w.send(add{N: n})
	}
	w.send(add{N: 9}, saga.Delay(time.Hour))
	w.exec(`UPDATE ` + w.queue("notes") + ` SET due = due - interval '90 seconds' WHERE due <= now()`)
	holder := w.begin()
	w.execTx(holder, `SELECT FROM `+w.queue("notes")+` LIMIT 1 FOR UPDATE`) // a worker has it in hand: no call waits
	infos := w.queues()
	if len(infos) != 2 || infos[0].Endpoint != "hears" || infos[1].Endpoint != "notes" {
		t.Fatalf("queues %+v", infos)
	}
	idle, busy := infos[0], infos[1]
	if idle.Ready != 0 || idle.Delayed != 0 || !idle.OldestDue.IsZero() || idle.Lag != 0 ||
		!slices.Equal(idle.Kinds, []string{"order.shipped"}) {
		t.Errorf("an idle queue: %+v", idle)
	}
	if busy.Ready != 3 || busy.Delayed != 1 || busy.Capped || busy.Lag < 90*time.Second || busy.Lag > 10*time.Minute ||
		time.Since(busy.OldestDue) < 90*time.Second || !slices.Equal(busy.Kinds, []string{"tally.add"}) {
		t.Errorf("a busy queue: %+v", busy)
	}
}

// A queue whose table was dropped by hand is not listed.
func TestQueuesPassOverADroppedOne(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("hears", bus.HandleTx(hears))
	w.install("listener", bus.HandleTx(hears))
	w.exec(`DROP TABLE ` + w.queue("hears"))
	if infos := w.queues(); len(infos) != 1 || infos[0].Endpoint != "listener" {
		t.Errorf("%+v", infos)
	}
}

// A program that watched a queue of millions counted all of its messages, every few seconds.
func TestQueuesCountNoFurtherThanTheLimit(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("listener", bus.HandleTx(hears))
	table := w.sql(w.queue("listener"))
	w.exec(`INSERT INTO ` + table + ` (due, id, kind, header, body)
		SELECT now() + (n - 700000) * interval '1 second', gen_random_uuid(), 'order.shipped', '{}', '{}'
		FROM generate_series(1, 1000000) n`)
	for _, state := range []string{"never analysed", "analysed"} {
		if state == "analysed" {
			w.exec(`ANALYZE ` + table)
		}
		begin := time.Now()
		info := w.queues()[0]
		t.Logf("%s: counted in %v: %+v", state, time.Since(begin), info)
		if !info.Capped || info.Ready < operate.CountLimit || info.Delayed < operate.CountLimit ||
			info.Lag < 690_000*time.Second {
			t.Errorf("%s: %+v", state, info)
		}
		if off := info.Ready - 700_000; state == "analysed" && (off < -70_000 || off > 70_000) {
			t.Errorf("%s: %d are ready, want about 700,000", state, info.Ready)
		}
		w.probeCount(state, table)
		w.probeTools(state, "peek", 50, "50", "-infinity", "00000000-0000-0000-0000-000000000000", "100")
	}
}

// probeTools fails if a plan of a statement reads the queue other than by its index, or more than most rows.
func (w *world) probeTools(state, name string, most int, args ...string) {
	w.t.Helper()
	tx := w.begin()
	defer func() { _ = tx.Rollback(w.t.Context()) }()
	statements := w.sentByPeek("listener")
	w.execTx(tx, statements.Get("look"))
	if _, err := tx.Prepare(w.t.Context(), name, statements.Get(name)); err != nil {
		w.t.Fatal(err)
	}
	for _, scan := range pgtest.Explain(w.t, tx, name, args...) {
		wanted := "Index Only Scan"
		if name == "peek" {
			wanted = "Index Scan"
		}
		byRow := scan.Node == "Index Scan" && scan.Rows <= 10_000 // the claimed messages
		if scan.Node != wanted && !byRow || scan.Rows+scan.Removed > most {
			w.t.Errorf("%s, %s: %v", name, state, scan)
		}
	}
}

// probeCount fails if a count reads the queue other than by its index, or more than the limit of each number.
func (w *world) probeCount(state, table string) {
	w.t.Helper()
	tx := w.begin()
	defer func() { _ = tx.Rollback(w.t.Context()) }()
	w.execTx(tx, w.sentByPeek("listener").Get("look"))
	w.execTx(tx, `SELECT FROM edda.queue_depths(ARRAY[1], $1)`, operate.CountLimit)
	var byTable, byIndex int64
	err := tx.QueryRow(w.t.Context(), `SELECT pg_stat_get_xact_tuples_returned($1::regclass),
		sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) FROM pg_index i WHERE i.indrelid = $1::regclass`,
		table).Scan(&byTable, &byIndex)
	if err != nil {
		w.t.Fatal(err)
	}
	if most := int64(2*operate.CountLimit + 10_000 + 1); byTable > 0 || byIndex == 0 || byIndex > most {
		w.t.Errorf("%s: a count reads %d rows of the table and %d of its index, want 0 and at most %d", state, byTable,
			byIndex, most)
	}
}

func (w *world) peek(endpoint string, o operate.PeekOptions) []operate.QueuedMessage {
	w.t.Helper()
	messages, err := w.operator().Messages().Peek(w.t.Context(), endpoint, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return messages
}

func TestPeekReadsTheHead(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	w.install("notes", w.notes())
	first := w.send(add{Key: "a", N: 1}, saga.WithHeader("tenant", "acme\x1b[2J"))
	second := w.send(add{Key: strings.Repeat("b", 10_000), N: 2})
	later := w.send(add{Key: "c", N: 3}, saga.Delay(time.Hour))
	holder := w.begin()
	w.execTx(holder, `SELECT FROM `+w.queue("notes")+` FOR UPDATE`)

	all := w.peek("notes", operate.PeekOptions{})
	if len(all) != 3 {
		t.Fatalf("%d messages: %+v", len(all), all)
	}
	for n, want := range []saga.ID{first.ID, second.ID, later.ID} {
		m := all[n]
		if m.Info.ID != want || m.Info.Kind != "tally.add" || m.Info.Attempt != 1 || m.Ready != (n < 2) ||
			m.Faulty != nil ||
			m.Info.Sent.IsZero() || m.Info.Due.IsZero() || !m.FirstFailed.IsZero() {
			t.Errorf("message %d: %+v", n, m)
		}
	}
	if got := all[0].Info.Header("tenant"); got != "acme\x1b[2J" || string(all[0].Body) != `{"Key":"a","N":1}` {
		t.Errorf("header %q, body %s", got, all[0].Body)
	}
	if m := all[1]; len(m.Body) != 4<<10 || m.Size <= 10_000 {
		t.Errorf("a large body: %d of %d bytes", len(m.Body), m.Size)
	}

	page := w.peek("notes", operate.PeekOptions{Limit: 1, BodyBytes: 3})
	if len(page) != 1 || string(page[0].Body) != `{"K` {
		t.Fatalf("a page of one: %+v", page)
	}
	rest := w.peek("notes", operate.PeekOptions{AfterDue: page[0].Info.Due, AfterID: page[0].Info.ID})
	if len(rest) != 2 || rest[0].Info.ID != second.ID {
		t.Errorf("behind it: %+v", rest)
	}
	w.commit(holder)
	w.start("notes", bus.EndpointOptions{}, w.notes())
	w.until("the ready ones are handled", func() bool { return w.rows("notes") == 1 })
}

func TestPeekShowsAHeaderThatIsNone(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("hears", bus.HandleTx(hears))
	w.exec(`INSERT INTO ` + w.queue("hears") + ` (due, id, kind, header, body, attempt, first_failed)
		VALUES (now(), gen_random_uuid(), 'order.shipped', E'\\xff00', '', 3, now())`)
	all := w.peek("hears", operate.PeekOptions{})
	if len(all) != 1 || all[0].Faulty == nil || all[0].Info.Attempt != 4 || all[0].FirstFailed.IsZero() {
		t.Errorf("%+v", all)
	}
}

func TestPeekRefuses(t *testing.T) {
	w := newWorld(t, bus.Options{})
	if _, err := w.operator().Messages().Peek(t.Context(), "nobody", operate.PeekOptions{}); !errors.Is(err,
		bus.ErrNotInstalled) ||
		!strings.Contains(err.Error(), "edda migrate install") {
		t.Errorf("an endpoint that is not there: %v", err)
	}
	if _, err := w.operator().Messages().Peek(t.Context(), "nobody", operate.PeekOptions{Limit: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

func TestQueueIsInstalledWithoutItsHandlers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	installer, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	for _, kinds := range [][]string{nil, {"order.shipped"}, {"order.shipped", "tally.add"}} {
		if err := installer.InstallQueue(t.Context(), "hears", kinds...); err != nil {
			t.Fatal(err)
		}
		if info := w.queues()[0]; info.Endpoint != "hears" || !slices.Equal(info.Kinds, kinds) {
			t.Errorf("installed for %v: %+v", kinds, info)
		}
	}
	w.send(add{N: 1})
	if n := w.rows("hears"); n != 1 {
		t.Errorf("%d messages reached the queue, want 1", n)
	}
	for _, wrong := range [][]string{{"Orders"}, {"orders", "Kind"}, {"", ""}} {
		if err := w.bus.InstallQueue(t.Context(), wrong[0], wrong[1:]...); err == nil ||
			!strings.Contains(err.Error(), "install endpoint") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestInstancesAreListedAndShown(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("alarms", bus.EndpointOptions{}, bus.Saga(alarms(saga.Pessimistic)))
	for _, key := range []string{"a", "b"} {
		w.send(remind{Key: key, In: time.Hour})
	}
	w.until("they are there", func() bool { return w.count(`SELECT count(*) FROM edda.saga`) == 2 })
	all, err := w.operator().Instances().List(t.Context(), persistence.ListOptions{})
	if err != nil || len(all) != 2 || all[1].Instance.Key != "b" || all[1].Instance.State != nil ||
		len(all[1].Instance.Pending) != 1 {
		t.Errorf("%+v %v", all, err)
	}
	shown, ok, err := w.operator().Instances().Show(t.Context(), all[0].Instance.Saga, "a")
	if err != nil || !ok || string(shown.Instance.State) == "" || shown.Instance.Version != 1 ||
		shown.Started.IsZero() {
		t.Errorf("%+v %v %v", shown, ok, err)
	}
	if _, ok, err := w.operator().Instances().Show(t.Context(), all[0].Instance.Saga, "c"); ok || err != nil {
		t.Errorf("one that is not there: %v %v", ok, err)
	}
}
