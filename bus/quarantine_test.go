package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// died inserts a session that died a while ago, and had the messages of these ids in hand.
func (w *world) died(ago string, batches ...string) (session string) {
	w.t.Helper()
	session = w.text(`INSERT INTO edda.session (id, host, pid, queues, expires, locked, ended, died)
		SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM edda.queue), now(), false,
		clock_timestamp() - $1::text::interval, true RETURNING id::text`, ago)
	for _, alone := range batches {
		w.exec(`INSERT INTO edda.in_flight (id, queue, session, alone, due, ids)
			SELECT gen_random_uuid(), q.id, $1::text::uuid, $2::text::boolean, array_agg(m.due), array_agg(m.id)
			FROM edda.queue q, `+w.queue("poisoned")+
			` m WHERE q.endpoint = 'poisoned' AND m.id::text LIKE 'aaaaaaaa-0000-%' GROUP BY q.id`, session, alone)
	}
	// The dead process had locked the rows, which has left their xmax.
	tx, err := w.owner.Begin(w.t.Context())
	if err == nil {
		_, err = tx.Exec(w.t.Context(), w.sql(`SELECT FROM `+w.queue("poisoned")+
			` m WHERE m.id::text LIKE 'aaaaaaaa-0000-%' FOR UPDATE`))
	}
	if err == nil {
		err = tx.Rollback(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

// suspected puts n innocents into the queue that died works on.
func (w *world) suspected(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body)
		SELECT now() - interval '1 minute', ('aaaaaaaa-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, $2, '{}',
		'{}' FROM generate_series(1, $1) n`,
		n, innocent{}.Kind())
}

const aloneInHand = "1 handlers, 1 batches, 1 messages"

// takes is an endpoint. When its handler gets a suspect, it records the messages that the process has in hand.
func (w *world) takes(o bus.EndpointOptions) (handled *atomic.Int64, crowd func() []string) {
	handled = &atomic.Int64{}
	var mu sync.Mutex
	var seen []string
	var inHand atomic.Int64
	w.start("poisoned", o, bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ innocent) error {
		defer handled.Add(1)
		defer inHand.Add(-1)
		if inHand.Add(1); !isSuspect(c.Info().ID) {
			return nil
		}
		look := aloneInHand
		// repeated: the other workers have time to take a message
		for n := 0; n < 5 && look == aloneInHand; n++ {
			<-time.After(10 * time.Millisecond)
			batches := w.count(`SELECT count(*) FROM edda.in_flight WHERE session = $1::text::uuid`,
				bus.Session(w.bus))
			messages := w.count(`SELECT coalesce(sum(cardinality(ids)), 0)::int FROM edda.in_flight
				WHERE session = $1::text::uuid`, bus.Session(w.bus))
			look = fmt.Sprintf("%d handlers, %d batches, %d messages", inHand.Load(), batches, messages)
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, look)
		return nil
	}))
	return handled, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// A process that handles a message with which a process has died handles no other message at the same time.
func TestSuspectsAreAloneInTheirProcess(t *testing.T) {
	w := poisoned(t)
	w.suspected(20)
	w.preload(2000)
	w.died("1 second", "false")
	handled, crowd := w.takes(bus.EndpointOptions{Concurrency: 4})
	w.untilEmpty("poisoned")
	// a batch that a busy machine rolled back handled its messages once more
	again := len(eventsOf[event.BatchFailed](w))
	if n := handled.Load(); n != 2020 && again == 0 {
		t.Errorf("%d messages were handled", n)
	}
	if got := len(crowd()); got < 20 || got > 20+again {
		t.Errorf("%d suspects were handled, and %d batches were rolled back", got, again)
	}
	for _, got := range crowd() {
		if got != aloneInHand {
			t.Errorf("with a suspect in hand there were %s", got)
		}
	}
	w.checkJournal()
	if n := len(eventsOf[event.BatchDone](w)); n > 500 {
		t.Errorf("there were %d batches: the others went alone, too", n)
	}
}

// Deaths in company count as one, and never convict by themselves.
func TestWhoIsGuilty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deaths string // of processes, each with whether the message was alone
		most   int
		guilty bool
	}{
		{"false false false false", 0, false},
		{"false true", 0, false},
		{"false true true", 0, true},
		{"false false false true", 0, false},
		{"true true", 0, false},
		{"true true true", 0, true},
		{"false", 3, false},
		{"false true", 3, true},
		{"false true", 4, false},
		{"false true true true", 5, true},
		{"false true true true", 6, false},
	} {
		t.Run(fmt.Sprintf("%s of %d", c.deaths, c.most), func(t *testing.T) {
			w := poisoned(t)
			w.suspected(1)
			w.died("1 second", strings.Fields(c.deaths)...)
			handled, _ := w.takes(bus.EndpointOptions{MaxCrashes: c.most})
			w.untilEmpty("poisoned")
			if ran, dead := handled.Load() == 1, w.deadOfProcess() == 1; ran == c.guilty || dead != c.guilty {
				t.Errorf("it ran: %v, it is a dead letter: %v", ran, dead)
			}
			w.checkJournal()
			if !c.guilty {
				return
			}
			w.until("the event", func() bool { return len(eventsOf[event.DeadLettered](w)) == 1 })
			if e := eventsOf[event.DeadLettered](w)[0]; e.Reason != "process died" ||
				!strings.Contains(e.Err.Error(), bus.ErrProcessDied.Error()) || e.Info.Kind != (innocent{}).Kind() {
				t.Errorf("event %+v", e)
			}
			if e, n := eventsOf[event.DeadLettered](w)[0],
				w.count(`SELECT attempts FROM edda.dead_letter`); e.Info.Attempt != n {
				t.Errorf("the event says attempt %d, the letter %d", e.Info.Attempt, n)
			}
		})
	}
}

// Fewer deaths never convict a message, so a smaller number would have no effect.
func TestFewerCrashesThanConvictAreRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error { return nil })
	for _, n := range []int{1, 2} {
		_, err := bus.NewEndpoint(w.bus, "poisoned", bus.EndpointOptions{MaxCrashes: n}, part)
		if err == nil || !strings.Contains(err.Error(), "MaxCrashes is") {
			t.Errorf("MaxCrashes %d: %v", n, err)
		}
	}
}

// A batch that a living process could not remove from the journal, because it lost its connection, is no death.
func TestBatchOfALivingProcessIsNoDeath(t *testing.T) {
	w := poisoned(t)
	w.suspected(3)
	w.died("1 second")
	other := w.process(w.owner.Config().ConnString(), bus.Options{})
	w.startOn(other, "alive", seldom, bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
	w.until("the other process is locked", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.session WHERE locked`) == 1
	})
	w.exec(`INSERT INTO edda.in_flight (id, queue, session, alone, due, ids)
		SELECT gen_random_uuid(), q.id, $1::text::uuid, true, array_agg(m.due), array_agg(m.id)
		FROM edda.queue q, `+w.queue("poisoned")+` m WHERE q.endpoint = 'poisoned' GROUP BY q.id`, bus.Session(other))
	handled, crowd := w.takes(bus.EndpointOptions{})
	w.untilEmpty("poisoned")
	if handled.Load() != 3 || len(crowd()) != 3 || strings.Contains(crowd()[0], " 1 messages") {
		t.Errorf("%d handled; with each in hand there were %v", handled.Load(), crowd())
	}
	if n := w.count(`SELECT count(*) FROM edda.suspect`); n != 0 {
		t.Errorf("%d messages are suspects", n)
	}
}

// Quarantine is over ten minutes after the last death; outside of it, messages in hand are not in the journal.
func TestQuarantineEnds(t *testing.T) {
	var texts lines
	w := newPoisoned(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&texts, nil))})
	inHand := make(chan int, 1)
	w.start("poisoned", bus.EndpointOptions{}, bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error {
		inHand <- w.count(`SELECT count(*) FROM edda.in_flight`)
		return nil
	}))
	look := func() int {
		t.Helper()
		if err := bus.RenewNow(t.Context(), w.bus); err != nil {
			t.Fatal(err)
		}
		w.send(innocent{})
		n := await(w, "the message", inHand)
		w.untilEmpty("poisoned") // the previous batch may still be in the journal
		return n
	}
	for _, c := range []struct {
		ago  string
		want int
	}{{"11 minutes", 0}, {"9 minutes", 1}, {"1 second", 1}} {
		w.died(c.ago)
		if got := look(); got != c.want {
			t.Errorf("a process died %s ago: %d batches in the journal, want %d", c.ago, got, c.want)
		}
	}
	w.exec(`UPDATE edda.session SET ended = ended - interval '11 minutes' WHERE died`)
	if got := look(); got != 0 {
		t.Errorf("quarantine is over: %d batches in the journal", got)
	}
	for text, want := range map[string]int{"edda: quarantine began\"": 1, "edda: quarantine ended\"": 1} {
		if got := strings.Count(texts.String(), text); got != want {
			t.Errorf("%q was logged %d times, want %d:\n%s", text, got, want, texts.String())
		}
	}
}

// If one endpoint of a process stops while others run, the quarantine does not end.
func TestQuarantineOutlivesAnEndpointThatStops(t *testing.T) {
	var texts lines
	w := newPoisoned(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&texts, nil))})
	handle := bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error { return nil })
	w.start("others", bus.EndpointOptions{}, bus.HandleTx(hears))
	stop := w.start("poisoned", bus.EndpointOptions{}, handle)
	renew := func() {
		t.Helper()
		if err := bus.RenewNow(t.Context(), w.bus); err != nil {
			t.Fatal(err)
		}
	}
	w.send(innocent{})
	w.send(shipped{})
	w.untilEmpty("poisoned") // both endpoints run
	w.untilEmpty("others")
	w.died("1 second")
	renew()
	stop()
	renew()
	if text := texts.String(); strings.Count(text, "edda: quarantine began\"") != 2 ||
		strings.Contains(text, "edda: quarantine ended") {
		t.Errorf("want two quarantines that begin and none that ends:\n%s", text)
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A process that ends in order, drained or not, is not counted as a death, and a live process never looks dead.
func TestOrderlyEndIsNoDeath(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]bool{"clean": true, "ErrDrain": false} {
		t.Run(name, func(t *testing.T) {
			w := poisoned(t)
			ctx, cancel := context.WithCancel(t.Context())
			begun, ended := make(chan bool, 1), make(chan error, 1)
			o := bus.EndpointOptions{Drain: 1}
			e := w.endpoint("poisoned", o, bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ innocent) error {
				begun <- true
				if !drain {
					<-c.Done()
				}
				return nil
			}))
			go func() { ended <- e.Run(ctx) }()
			w.until("it runs", func() bool { return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == 1 })
			w.send(innocent{})
			await(w, "the handler", begun)
			cancel()
			_ = await(w, "the end", ended)
			if got := w.text(`SELECT string_agg(died || ' ' || (ended IS NOT NULL), ' ')
				FROM edda.session`); got != "false true" {
				t.Errorf("died and ended: %s", got)
			}
		})
	}
}

// Other processes detect the end of a process at once, by its lock, or without a lock when its session has expired.
func TestDeathIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		locked bool
		left   string // of the session's time
		dead   bool
	}{
		"lock free":             {locked: true, left: "10 s", dead: true},
		"no lock, time left":    {left: "10 s"},
		"no lock, time is over": {left: "-1 s", dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := poisoned(t)
			w.exec(`INSERT INTO edda.session (id, host, pid, queues, expires, locked)
				SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM edda.queue), now() + $1::text::interval,
				$2`, c.left, c.locked)
			w.takes(bus.EndpointOptions{})
			w.until("it runs", func() bool {
				return w.count(`SELECT count(*) FROM edda.session WHERE locked AND id = $1::text::uuid`,
					bus.Session(w.bus)) == 1
			})
			if n := w.count(`SELECT count(*) FROM edda.session WHERE died`); (n == 1) != c.dead {
				t.Errorf("%d sessions are marked as dead, want %v", n, c.dead)
			}
		})
	}
}

// Each of n processes renews its session every few seconds. If each tried the locks of all, the server would try n * n.
func TestRenewalTriesTheLocksOfTwentySessions(t *testing.T) {
	w := poisoned(t)
	b := w.process(pgdev.DSN(t), bus.Options{Wakeup: bus.PollOnly}) // it misses its own notifications of deaths
	w.startOn(b, "poisoned", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error { return nil }))
	w.until("it runs", func() bool { return w.count(`SELECT count(*) FROM edda.session`) == 1 })
	w.exec(`INSERT INTO edda.session (id, host, pid, queues, expires, locked)
		SELECT overlay(id placing CASE WHEN n > 15 THEN 'ff' ELSE '00' END from 1 for 2)::uuid, n::text, 7, '{}',
		now() + interval '1 hour', true
		FROM (SELECT n, overlay($1::text placing lpad(n::text, 4, '0') from 33 for 4) FROM generate_series(1,
		30) n) x(n, id)`, bus.Session(b))
	for _, want := range []int{20, 30} {
		if err := bus.RenewNow(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n := w.count(`SELECT count(*) FROM edda.session WHERE died`); n != want {
			t.Errorf("%d sessions were found to be dead, want %d", n, want)
		}
	}
}

// A message that a process had in hand a millisecond ago makes a process check who has died, before it runs anything.
func TestReturningMessagesMakeAProcessLookAround(t *testing.T) {
	w := poisoned(t)
	bus.LookAroundFor(w.bus, time.Minute) // 50 ms are not enough on every machine
	inHand := make(chan int, 1)
	w.start("poisoned", bus.EndpointOptions{}, bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error {
		inHand <- w.count(`SELECT count(*) FROM edda.in_flight`)
		return nil
	}))
	w.until("it runs", func() bool { return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == 1 })
	w.exec(`INSERT INTO edda.session (id, host, pid, queues, expires, locked)
		SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM edda.queue), now() + interval '1 hour', false`)
	if err := bus.RenewNow(t.Context(), w.bus); err != nil { // now it has read its peer
		t.Fatal(err)
	}
	w.exec(`UPDATE edda.session SET locked = true WHERE host = 'a host'`) // which is dead now
	tx := w.begin()
	w.execTx(tx, `INSERT INTO `+w.sql(w.queue("poisoned"))+
		` (due, id, kind, header, body) VALUES (now() - interval '1 s', gen_random_uuid(), 'poison.innocent', `+
		`'{}', '{}')`)
	w.commit(tx)
	if got := await(w, "a new message", inHand); got != 0 {
		t.Errorf("a message that nobody had in hand was entered into the journal")
	}
	w.lockedOnce()
	if got := await(w, "a message that was in other hands", inHand); got != 1 {
		t.Errorf("the death was not seen before the message was handled: %d batches in the journal", got)
	}
}

// lockedOnce commits a message whose row was locked before, like a message that was released.
func (w *world) lockedOnce() {
	w.t.Helper()
	tx := w.begin()
	w.execTx(tx, `INSERT INTO `+w.sql(w.queue("poisoned"))+
		` (due, id, kind, header, body) VALUES (now() - interval '1 s', gen_random_uuid(), 'poison.innocent', `+
		`'{}', '{}')`)
	w.execTx(tx, `SAVEPOINT before_the_lock`)
	w.execTx(tx, `SELECT FROM `+w.sql(w.queue("poisoned"))+` FOR UPDATE`)
	w.execTx(tx, `ROLLBACK TO before_the_lock`)
	w.commit(tx)
}

// Old rows of the journal are deleted in bounded pieces, and the other rows stay.
func TestCleanInFlightJournal(t *testing.T) {
	w := poisoned(t)
	w.suspected(2)
	w.makeQueue("poisoned")
	queue := w.count(`SELECT id FROM edda.queue WHERE endpoint = 'poisoned'`)
	w.exec(`ALTER TABLE edda.suspect ALTER queue SET DEFAULT ` + fmt.Sprint(queue) +
		`; ALTER TABLE edda.in_flight ALTER queue SET DEFAULT ` + fmt.Sprint(queue))
	w.exec(`INSERT INTO edda.suspect (due, id, deaths, alone, at)
		SELECT due, id, 1, 0, now() - interval '2 minutes' FROM ` + w.queue("poisoned") + `
		UNION ALL SELECT now(), gen_random_uuid(), 1, 0, now() - interval '2 minutes' FROM generate_series(1, 2500)
		UNION ALL SELECT now(), gen_random_uuid(), 1, 0, now()`)
	w.exec(`INSERT INTO edda.in_flight (id, session, alone, due, ids, at)
		SELECT gen_random_uuid(), gen_random_uuid(), false, '{}', '{}', now() - n * interval '40 minutes'
		FROM generate_series(1, 2) n`)
	w.exec(`INSERT INTO edda.session (id, host, pid, queues, expires, locked, ended)
		SELECT gen_random_uuid(), '', 1, '{}', now(), false, now() - n * interval '40 minutes' FROM generate_series(1,
		2) n`)
	if _, err := w.bus.Send(t.Context(), innocent{}); err != nil { // the bus has read the queue
		t.Fatal(err)
	}
	bus.CleanNow(t.Context(), w.bus)
	got := w.text(`SELECT concat_ws(' ', (SELECT count(*) FROM edda.suspect), (SELECT count(*)
		FROM edda.in_flight), (SELECT count(*) FROM edda.session))`)
	if got != "3 1 1" {
		t.Errorf("%s rows are left of the journal, batches and sessions, want 3 1 1", got)
	}
}

// After a day of crashes there are thousands of sessions, and every process reads them every few seconds.
func TestSessionsAreReachedByIndex(t *testing.T) {
	w := poisoned(t)
	some := "00000000-0000-0000-0000-000000000007"
	pgtest.Probes{
		SQL: bus.SessionSQL(w.bus),
		Statements: map[string][]string{
			"renew_session":      {some, "h", "1", "{1}", "true", "1", "{0}"},
			"end_session":        {some},
			"lock_session":       {some},
			"bury_sessions":      {some, "false", "20"},
			"peers":              {some},
			"quarantined_queues": {"{1,2}", "600000000"},
			"dead_sessions":      {"{" + some + "}", "{7}", "true"},
			"old_batches":        {"1", some, "{" + some + "}"},
			"leave_batch":        {some},
			"leave_batches":      {"{" + some + "}"},
			"charge_batches":     {"{" + some + "}"},
			"suspects":           {"1", "{now}", "{" + some + "}"},
			"strike_out":         {"1", "now", some},
		},
		Settings: []string{"SET LOCAL enable_seqscan = off", "SET LOCAL enable_hashjoin = off",
			"SET LOCAL enable_mergejoin = off", "SET LOCAL enable_bitmapscan = off"},
		Fill: `INSERT INTO :schema.session (id, host, pid, queues, expires, locked, ended, died)
			SELECT gen_random_uuid(), 'h', 1, '{1}', now(), false, now() - n * interval '1 minute', true
			FROM generate_series(1, 5000) n;
			INSERT INTO :schema.in_flight (id, queue, session, alone, due, ids) SELECT gen_random_uuid(), 2 + n,
			gen_random_uuid(), false, '{}', '{}' FROM generate_series(1, 5000) n;
			INSERT INTO :schema.suspect (queue, due, id, deaths, alone) SELECT 1,
			now() - n * interval '1 minute', gen_random_uuid(), 1, 0 FROM generate_series(1, 5000) n`,
		MaxRows: 60,
	}.Check(t, w.owner, w.parsed())
}
