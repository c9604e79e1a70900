package bus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
)

// poisoned is a world with an endpoint for innocents and killers, and a table for the effects of innocents.
func poisoned(t *testing.T) *world {
	t.Helper()
	return newPoisoned(t, bus.Options{})
}

// poisonedOn is poisoned on a server of the test's own.
func poisonedOn(t *testing.T, dsn string) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, schema: "edda"}
	w.owner = w.openPool(dsn)
	w.pool = w.owner
	if err := migrations.Up(t.Context(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.bus = w.newBus(bus.Options{})
	return w.furnish()
}

func newPoisoned(t *testing.T, o bus.Options) *world {
	t.Helper()
	return newWorld(t, o).furnish()
}

func (w *world) furnish() *world {
	t := w.t
	t.Helper()
	owner, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err == nil {
		err = owner.InstallQueue(t.Context(), "poisoned", innocent{}.Kind(), killer{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`CREATE TABLE edda.effect (id uuid NOT NULL,
		at timestamptz NOT NULL DEFAULT clock_timestamp()); GRANT ALL ON edda.effect TO PUBLIC`)
	if w.role != "" {
		w.exec(`GRANT INSERT ON edda.effect TO "` + w.role + `"`)
	}
	return w
}

// mayCount returns a count, or -1 while the server does not answer.
func (w *world) mayCount(sql string) int {
	n := -1
	if err := w.owner.QueryRow(w.t.Context(), w.sql(sql)).Scan(&n); err != nil {
		return -1
	}
	return n
}

// preload puts innocents into the queue that are due already, each a microsecond after the previous.
func (w *world) preload(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body)
		SELECT now() - interval '1 minute' + n * interval '1 microsecond', gen_random_uuid(), $2, '{}', '{}'
		FROM generate_series(1, $1) n`,
		n, innocent{}.Kind())
}

// preloadKiller puts a killer behind the nth innocent.
func (w *world) preloadKiller(n int, how string) {
	w.t.Helper()
	w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body)
		SELECT due, gen_random_uuid(), $2, '{"edda-test":"kept"}', $3::bytea
		FROM `+w.queue("poisoned")+` ORDER BY due OFFSET $1 LIMIT 1`, n, killer{}.Kind(),
		[]byte(fmt.Sprintf(`{"How":%q}`, how)))
}

func (w *world) deadOfProcess() int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM edda.dead_letter WHERE reason = 'process died'`)
}

// drained waits until the queue is empty, and returns how long that took.
func (w *world) drained(what string) time.Duration {
	w.t.Helper()
	begun, table := time.Now(), w.queue("poisoned")
	w.untilWithin(pgdev.Patience(time.Minute), what, func() bool {
		return w.count(`SELECT count(*) FROM (SELECT FROM `+table+
			` LIMIT 1) x`) == 0
	})
	return time.Since(begun)
}

// checkInnocents checks that every innocent had its effect once, and that the journal is empty.
func (w *world) checkInnocents(n int) {
	w.t.Helper()
	if all, distinct := w.count(`SELECT count(*) FROM edda.effect`),
		w.count(`SELECT count(DISTINCT id) FROM edda.effect`); all != n || distinct != n {
		w.t.Errorf("%d innocents had %d effects, of %d messages", n, all, distinct)
	}
	// If a second process handled a dead process's messages before the death was detected, the dead process's batch
	// stays in the journal until it is old. A batch of a session that ended in order must not stay.
	w.exec(`UPDATE edda.in_flight SET at = at - interval '2 hours' WHERE session NOT IN (SELECT s.id
		FROM edda.session s WHERE s.ended IS NOT NULL AND NOT s.died)`)
	w.exec(`UPDATE edda.suspect SET at = at - interval '2 minutes'`)
	if _, err := w.bus.Send(w.t.Context(), killer{How: "nobody runs it"}); err != nil { // the bus has read the queue
		w.t.Fatal(err)
	}
	bus.CleanNow(w.t.Context(), w.bus)
	w.checkJournal()
}

// checkJournal waits until no batch and no suspect is left: a batch that came too late for its messages leaves the
// journal after the queue is empty.
func (w *world) checkJournal() {
	w.t.Helper()
	for _, table := range []string{"in_flight", "suspect"} {
		w.until(table+" is empty", func() bool { return w.count(`SELECT count(*) FROM edda.`+table) == 0 })
	}
}

// A message that kills its process came back with its batch, and killed the next process, for ever.
func TestPoisonIsDeadAfterFourProcesses(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"exit", "fatal", "panic", "kill"} {
		t.Run(how, func(t *testing.T) {
			w := poisoned(t)
			w.preload(500)
			w.preloadKiller(250, how)
			s := w.supervise(1, workerSpec{})
			w.drained("all messages met their fate")
			s.stop()
			if n := s.died(); n < 3 || n > 4 {
				t.Errorf("%d processes died, want 4 at most", n)
			}
			if n := w.deadOfProcess(); n != 1 {
				t.Errorf("%d dead letters, want the killer", n)
			}
			w.checkInnocents(500)
			if got := w.text(`SELECT kind || ' ' || attempts || ' ' || convert_from(header,
				'UTF8') || ' ' || convert_from(body, 'UTF8') FROM edda.dead_letter`); got !=
				`poison.killer 0 {"edda-test":"kept"} {"How":"`+how+`"}` {
				t.Errorf("the dead letter is %s", got)
			}
		})
	}
}

// The same in a leased endpoint: messages that ran beside the killer are claimed again with it, and are not to blame.
func TestLeasedPoisonIsDeadAfterFourProcesses(t *testing.T) {
	w := poisoned(t)
	w.preload(300)
	w.preloadKiller(100, "exit")
	s := w.supervise(1, workerSpec{Leased: true, Concurrency: 8})
	w.drained("all messages met their fate")
	s.stop()
	if n := s.died(); n < 3 || n > 4 {
		t.Errorf("%d processes died, want 4 at most", n)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'process died' AND kind = 'poison.killer'`)
	w.want(300, `SELECT count(DISTINCT id) FROM edda.effect`)
}

// The neighbours of a killer are handled at nearly the normal rate. The bound is far from the measured value, for
// machines with other load: most of the loss is the time of four starts of a process.
func TestPoisonLeavesItsNeighboursTheirRate(t *testing.T) {
	const n = 6_000
	w := poisoned(t)
	w.preload(n)
	s := w.supervise(1, workerSpec{})
	healthy := w.drained("the healthy run is over")
	s.stop()
	w.preload(n)
	w.preloadKiller(n/4, "exit")
	s = w.supervise(1, workerSpec{})
	// Five times a process starts, and how long that takes depends on the machine. The neighbours' loss is measured
	// after that.
	w.untilWithin(pgdev.Patience(time.Minute), "the killer is dead", func() bool { return w.deadOfProcess() == 1 })
	left := w.count(`SELECT count(*) FROM ` + w.queue("poisoned"))
	sick := w.drained("the run with a killer is over")
	s.stop()
	rate := 100 * healthy.Seconds() / sick.Seconds() * float64(left) / n
	t.Logf("healthy %d messages in %v, after the killer %d in %v, that is %.0f %% of the rate", n,
		healthy.Round(time.Millisecond), left, sick.Round(time.Millisecond), rate)
	if left < n/2 {
		t.Errorf("only %d messages were left when the killer was dead, too few for a rate", left)
	}
	if rate < 25 {
		t.Errorf("the neighbours kept %.0f %% of their rate", rate)
	}
	if s.died() > 4 || w.deadOfProcess() != 1 {
		t.Errorf("%d processes died, %d dead letters", s.died(), w.deadOfProcess())
	}
	w.checkInnocents(2 * n)
}

// Other processes detect a death before they take the messages of the dead process.
func TestPoisonAmongThreeProcesses(t *testing.T) {
	w := poisoned(t)
	w.preload(1500)
	w.preloadKiller(100, "exit")
	s := w.supervise(3, workerSpec{Concurrency: 2})
	w.drained("all messages met their fate")
	s.stop()
	t.Logf("%d processes died", s.died())
	if n := s.died(); n < 3 || n > 7 {
		t.Errorf("%d processes died", n)
	}
	if n := w.deadOfProcess(); n != 1 {
		t.Errorf("%d dead letters, want the killer", n)
	}
	w.checkInnocents(1500)
}

// A process that is killed from outside had innocents in hand, and they are not to blame.
func TestKilledWorkersBlameNobody(t *testing.T) {
	w := poisoned(t)
	w.preload(6000)
	s := w.supervise(3, workerSpec{Concurrency: 2})
	for range 10 {
		before := w.count(`SELECT count(*) FROM edda.effect`)
		some := before + rand.N(300)
		w.until("work goes on", func() bool { return w.count(`SELECT count(*) FROM edda.effect`) > some })
		w.until("one is killed", s.kill)
	}
	w.drained("all messages are handled")
	s.stop()
	if n := w.deadOfProcess(); n != 0 {
		t.Errorf("%d innocents are dead letters", n)
	}
	w.checkInnocents(6000)
}

// PollOnly has no connection whose end other processes could detect: a death is detected when the session's time is
// over, which this test makes short. Then the messages that the dead process had in hand count as suspects.
func TestPoisonWithoutListening(t *testing.T) {
	w := poisoned(t)
	w.preload(300)
	w.preloadKiller(100, "exit")
	s := w.supervise(1, workerSpec{Wakeup: bus.PollOnly, Ended: func() {
		if _, err := pg.Committed(w.owner).Exec(context.Background(),
			w.sql(`UPDATE edda.session SET expires = now() WHERE ended IS NULL`)); err != nil {
			t.Error(err)
		}
	}})
	w.drained("all messages met their fate")
	s.stop()
	if n := s.died(); n > 5 {
		t.Errorf("%d processes died", n)
	}
	if n := w.deadOfProcess(); n != 1 {
		t.Errorf("%d dead letters, want the killer", n)
	}
	w.checkInnocents(300)
}

// Postgres is restarted, in order and as after a crash, while processes are in quarantine: no message is lost, handled
// twice or blamed. The journal is empty after a crash, so the killer needs more deaths.
func TestRestartOfPostgresInQuarantine(t *testing.T) {
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := poisonedOn(t, server.DSN())
	table := w.queue("poisoned")
	w.preload(3000)
	w.preloadKiller(2500, "exit")
	w.died("1 second")
	s := w.supervise(2, workerSpec{DSN: server.DSN()})
	for n, mode := range []pgdev.Mode{pgdev.Fast, pgdev.Immediate, pgdev.Immediate} {
		w.until("work goes on", func() bool { return w.mayCount(`SELECT count(*) FROM edda.effect`) >= 500*(n+1) })
		if err := server.Restart(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
	}
	w.untilWithin(pgdev.Patience(time.Minute), "all messages met their fate",
		func() bool { return w.mayCount(`SELECT count(*) FROM `+table) == 0 })
	s.stop()
	if n := w.deadOfProcess(); n != 1 {
		t.Errorf("%d dead letters, want the killer", n)
	}
	if n := s.exited("exit status 7"); n > 8 { // without workers that could not begin while Postgres was away
		t.Errorf("%d processes died", n)
	}
	w.checkInnocents(3000)
}

// The same for a leased endpoint: a message that two processes died with runs beside no other handler.
func TestLeasedSuspectsAreAloneInTheirEndpoint(t *testing.T) {
	w := poisoned(t)
	w.suspectedTwice(5)
	w.preload(200)
	var inHand, suspects, crowded atomic.Int64
	w.start("poisoned", bus.EndpointOptions{Concurrency: 8}, bus.Handle(func(c *bus.Context, _ innocent) error {
		defer inHand.Add(-1)
		suspect := isSuspect(c.Info().ID)
		if inHand.Add(1) > 1 && suspect {
			crowded.Add(1)
		}
		_ = run.Sleep(c, 3*time.Millisecond) // long enough for others to begin beside it
		if suspect {
			suspects.Add(1)
			crowded.Add(min(inHand.Load()-1, 1))
		}
		return nil
	}))
	w.untilEmpty("poisoned")
	if suspects.Load() != 5 || crowded.Load() > 0 {
		t.Errorf("%d suspects ran, others were beside them %d times", suspects.Load(), crowded.Load())
	}
}
