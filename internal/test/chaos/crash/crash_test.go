package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// TestMain lets the test binary be the worker processes too.
func TestMain(m *testing.M) { labtest.Main(m, Scenario) }

// openTestLab has a server of its own: the checker counts the deadlocks of a whole server.
func openTestLab(t *testing.T, load workload) *arena {
	t.Helper()
	l, err := openArena(t.Context(),
		lab.Settings{Scenario: Scenario, Seed: 7, Size: lab.Size{Workers: 2}, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	must(t, l.use(t.Context(), load))
	must(t, l.begin(t.Context()))
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// judged is what the checker says after everything has come to rest.
func (a *arena) judged(t *testing.T) []lab.Violation {
	t.Helper()
	must(t, a.drain(t.Context(), pgdev.Patience(30*time.Second)))
	must(t, a.judge(t.Context()))
	return a.Found()
}

func story(found []lab.Violation) string {
	var text strings.Builder
	for _, v := range found {
		fmt.Fprintf(&text, "\n  %s: %s", v.Rule, v.What)
	}
	return text.String()
}

func TestWalkOfAFewPoints(t *testing.T) {
	t.Parallel()
	l := openTestLab(t, withSagas)
	stop := l.feed(t.Context())
	var points []point
	for _, statement := range []string{"take", "save", "save_locked", "insert", "delete", "crash_step"} {
		points = append(points, point{statement, faultproxy.Before, 1}, point{statement, faultproxy.After, 2})
	}
	points = append(points, point{"commit", faultproxy.Before, 2}, point{"commit", faultproxy.After, 2})
	w, err := l.walk(t.Context(), points)
	must(t, err)
	must(t, stop())
	if found := l.judged(t); len(found) > 0 {
		t.Errorf("the promise was broken: %s", story(found))
	}
	w.report()
}

// The checker must see what it is there to see. Here somebody deletes one message behind the engine's back and
// copies another.
func TestCheckerSeesALostAndADoubledMessage(t *testing.T) {
	t.Parallel()
	l := openTestLab(t, withSagas)
	l.fill(t)
	queue := fmt.Sprintf("edda.queue_%d", l.one(t, `SELECT id FROM edda.queue WHERE endpoint = 'jobs'`))
	plain := `WHERE id IN (SELECT id FROM ` + queue +
		` WHERE convert_from(body, 'UTF8') LIKE '%"plain"%' ORDER BY id LIMIT 1) RETURNING id::text`
	lost := l.text(t, `DELETE FROM `+queue+` `+plain)
	doubled := l.text(t, `INSERT INTO `+queue+
		` SELECT due + interval '1 ms', id, sent, first_failed, attempt, conflict, kind, header, body FROM `+queue+` `+
		plain)

	found := l.judged(t)
	var told []string
	for _, v := range found {
		told = append(told, v.Rule+" "+v.ID)
	}
	slices.Sort(told)
	if want := []string{"doubled " + doubled, "lost " + lost}; !slices.Equal(told, want) {
		t.Errorf("the checker told %v, want %v", told, want)
	}
	var out bytes.Buffer
	l.Out = &out
	if err := l.Conclude(t.Context(), ""); !errors.Is(err, lab.ErrBroken) {
		t.Errorf("Conclude returned %v", err)
	}
	if !strings.Contains(out.String(), "lost: message "+lost) || strings.Count(out.String(), "handled at jobs") != 2 {
		t.Errorf("the story does not tell what happened:\n%s", out.String())
	}
}

// Each of these is done to the outcome of a good run, and undone after the checker has looked.
var sabotages = []struct{ name, sql, rule string }{
	{"an effect is gone", `DELETE FROM chaos.handled WHERE ctid = (SELECT min(ctid) FROM chaos.handled)`, "lost"},
	{"an effect of a message that was never sent",
		`INSERT INTO chaos.handled VALUES (gen_random_uuid(), 'jobs', 'plain', 'nobody')`, "invented"},
	{"a message is dead and handled", `INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body,
		attempts, conflicts, reason, error)
		SELECT endpoint, id, 'k', '', '', 1, 0, 'r', 'e' FROM chaos.handled LIMIT 1`, "doubled"},
	{"a dead letter was discarded", `WITH d AS (DELETE FROM edda.dead_letter WHERE id = (SELECT min(id)
		FROM edda.dead_letter) RETURNING *)
		INSERT INTO edda.discarded (endpoint, message_id, kind, saga, key, reason) SELECT endpoint, message_id, kind,
		'', '', '' FROM d`, "misplaced"},
	{"the last step of an instance is gone", `DELETE FROM chaos.step s WHERE NOT look AND n = 2 AND NOT EXISTS (SELECT
		FROM chaos.step x WHERE x.iid = s.iid AND x.n > 2)`, "state"},
	{"a step in the middle is gone", `DELETE FROM chaos.step WHERE n = 1 AND NOT look AND iid IN (SELECT iid
		FROM chaos.step WHERE n = 2)`, "lost"},
	{"a step is repeated", `INSERT INTO chaos.step SELECT * FROM chaos.step WHERE n = 1 AND NOT look LIMIT 1`,
		"doubled"},
	{"an instance is gone", `DELETE FROM edda.saga WHERE iid = (SELECT min(iid::text)::uuid FROM edda.saga)`, "lost"},
	{"a version was skipped", `UPDATE edda.saga SET version = version + 2 WHERE iid = (SELECT min(iid::text)::uuid
		FROM edda.saga)`, "version"},
	{"a state is old", `UPDATE edda.saga SET version = version + 1, state = '{"Steps":0}'
		WHERE (state ->> 'Steps')::int > 0`, "state"},
	{"a key has two instances", `INSERT INTO chaos.version (iid, saga, key, op, new) SELECT gen_random_uuid(), saga,
		key, 'INSERT', 1 FROM edda.saga LIMIT 1`, "key"},
	{"a cancelled timeout fired", `UPDATE chaos.step SET pending = '{}' WHERE NOT look`, "doubled"},
	{"a timeout never fired", `UPDATE chaos.step SET pending = ARRAY[gen_random_uuid()] WHERE iid IN (SELECT iid
		FROM edda.saga)`, "lost"},
	{"an id is not remembered", `DELETE FROM edda.sent_id WHERE id = (SELECT min(id::text)::uuid FROM edda.sent_id)`,
		"forgotten"},
	{"an id is remembered for nothing", `INSERT INTO edda.sent_id (id, sum) VALUES (gen_random_uuid(), '')`, "orphan"},
	{"an addition is lost", `UPDATE chaos.tally SET n = n - 1 WHERE slot = (SELECT min(slot) FROM chaos.tally)`,
		"lost"},
	{"a version is in no page", `DELETE FROM edda.history WHERE id = (SELECT min(history::text)::uuid FROM edda.saga)`,
		"untold"},
	{"an instance does not know its last page", `UPDATE edda.saga SET history = NULL WHERE version > 1`, "untold"},
	{"a page is there twice", `WITH twice AS (INSERT INTO edda.history_range SELECT slot, first, last, id FROM
		edda.history_range, LATERAL (SELECT 'ffffffff-ffff-7fff-bfff-ffffffffffff'::uuid AS id) n RETURNING 1)
		INSERT INTO edda.history SELECT slot, 'ffffffff-ffff-7fff-bfff-ffffffffffff', at, endpoint, messages, page
		FROM edda.history`, "untold"},
	{"a message stays in its queue", `SELECT edda.send('crash.job', '{}')`, "stuck"},
}

func TestCheckerSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := openTestLab(t, withSagas)
	l.fill(t)
	if found := l.judged(t); len(found) > 0 {
		t.Fatalf("nothing is wrong yet: %s", story(found))
	}
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			tx, err := l.Pool.Begin(t.Context())
			must(t, err)
			defer tx.Rollback(context.WithoutCancel(t.Context()))
			tag, err := tx.Exec(t.Context(), s.sql)
			must(t, err)
			if tag.RowsAffected() == 0 {
				t.Fatal("the sabotage found nothing to do")
			}
			l.Forget()
			must(t, l.check(t.Context(), tx))
			found := l.Found()
			if !slices.ContainsFunc(found, func(v lab.Violation) bool { return v.Rule == s.rule }) {
				t.Errorf("want %q, found: %s", s.rule, story(found))
			}
		})
	}
}

func TestCheckerSeesADeadlockAndAWorkerThatEnds(t *testing.T) {
	t.Parallel()
	l := openTestLab(t, bare)
	must(t, l.ensure())
	l.deadlock(t)
	l.slots[0].mu.Lock()
	p := l.slots[0].now
	l.slots[0].mu.Unlock()
	must(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	<-p.Ended()
	l.retire(t.Context())
	l.followers.Wait()
	rules := map[string]bool{}
	for _, v := range l.judged(t) {
		rules[v.Rule] = true
	}
	if !rules["deadlocks"] || !rules["ended"] {
		t.Errorf("found %v, want deadlocks and ended", rules)
	}
}

// deadlock makes two transactions wait for each other's row.
func (a *arena) deadlock(t *testing.T) {
	var both sync.WaitGroup
	var held sync.WaitGroup
	held.Add(2)
	for slot := range 2 {
		both.Go(func() {
			conn, err := pgx.Connect(t.Context(), a.Server.DSN())
			if err != nil {
				t.Error(err)
				held.Done()
				return
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			_, err = conn.Exec(t.Context(), "BEGIN")
			_, err2 := conn.Exec(t.Context(), sql.Get("crash_tally"), slot)
			held.Done()
			if err != nil || err2 != nil {
				t.Error(err, err2)
				return
			}
			held.Wait()
			_, _ = conn.Exec(t.Context(), sql.Get("crash_tally"), 1-slot) // one of the two is chosen to fail
		})
	}
	both.Wait()
}

// fill sends some hundred messages while no worker runs.
func (a *arena) fill(t *testing.T) {
	t.Helper()
	for range 40 {
		must(t, a.feeder.together(t.Context()))
	}
}

func (a *arena) one(t *testing.T, sql string) (n int) {
	t.Helper()
	must(t, a.Pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

func (a *arena) text(t *testing.T, sql string) (s string) {
	t.Helper()
	must(t, a.Pool.QueryRow(t.Context(), sql).Scan(&s))
	return s
}
