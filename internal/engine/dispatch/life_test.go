package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// With MisfireAll a manifest that is behind fires every due time, one after the other, each once.
func TestMisfireAllCatchesUp(t *testing.T) {
	for name, overlap := range map[string]bool{"overlap": true, "no overlap": false} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, due, overlap)
				VALUES ('m', '{"rule":{"kind":"every","every":3600000000000},"misfire":"all"}', 'ping', '{}',
				now() - interval '9 hours 30 minutes', $1)`, overlap)
			s := w.scheduler()
			for range 20 {
				w.cycle(s)
				w.drain(s)
				if !overlap {
					w.end("m", "succeeded")
				}
			}
			if n := w.count("SELECT count(*) FROM :schema.run"); n != 10 {
				t.Errorf("%d runs, want 10: %s", n, w.states("m"))
			}
			if got := w.text("SELECT (max(due) - min(due))::text FROM :schema.run"); got != "09:00:00" {
				t.Errorf("the due times span %s", got)
			}
			w.onceEach()
		})
	}
}

// Without overlap the next firing waits for the end of the run, with it for its dispatch.
func TestOverlapIsAllowedOrNot(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	w.exec("UPDATE :schema.manifest SET overlap = true WHERE name = 'm2'")
	s := w.scheduler()
	w.cycle(s)
	w.exec("UPDATE :schema.manifest SET due = clock_timestamp() - interval '1 millisecond'")
	if c := w.cycle(s); c.loaded != 0 {
		t.Errorf("%+v: an entry was queued beside another", c)
	}
	w.drain(s)
	if c := w.cycle(s); c.queued != 1 || w.states("m2") != "schedule active 1, schedule queued 0" &&
		w.states("m2") != "schedule queued 0, schedule active 1" {
		t.Errorf("%+v, want m2 alone: %s", c, w.states("m2"))
	}
	w.end("m1", "succeeded")
	if c := w.cycle(s); c.queued != 1 {
		t.Errorf("%+v, want m1", c)
	}
}

// A dispatch that frees a manifest which is due again wakes the evaluator of this process.
func TestDispatchWakesTheEvaluator(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	w.exec("UPDATE :schema.manifest SET overlap = true")
	s := w.scheduler()
	w.cycle(s)
	w.due("m1")
	w.drain(s)
	if len(s.core.due) != 1 {
		t.Error("the evaluator was not woken")
	}
	if len(s.core.ready) != 1 {
		t.Error("the dispatcher was not woken by the cycle")
	}
}

// Attempts after a failure come later and later, and the last one leaves a dead run that holds its manifest.
func TestFailedRunIsTriedAgainAndDies(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	w.exec("UPDATE :schema.manifest SET retries = 2, retry_delay = '10 minutes', retry_most = '15 minutes'")
	s := w.scheduler()
	w.cycle(s)
	for attempt, want := range []string{"00:10:00", "00:15:00", ""} {
		w.drain(s)
		w.end("m1", "failed")
		if attempt == 2 {
			break
		}
		if got := w.text("SELECT date_trunc('minute', ready - clock_timestamp() + interval '30 seconds')::text " +
			"FROM :schema.run WHERE state = 'waiting'"); got != want {
			t.Errorf("attempt %d: the next one comes after %s, want %s", attempt+1, got, want)
		}
		if c := w.cycle(s); c.loaded != 0 {
			t.Errorf("%+v: the manifest fires beside its retry", c)
		}
		w.exec("UPDATE :schema.run SET ready = now() WHERE state = 'waiting'")
	}
	if got := w.states("m1"); got != "schedule dead 3" {
		t.Errorf("m1: %s", got)
	}
	w.due("m1")
	if c := w.cycle(s); c.loaded != 0 {
		t.Errorf("%+v: a held manifest fires", c)
	}
	w.onceEach()
}

// The next cycle ends a run that takes too long, and its manifest continues.
func TestRunThatTakesTooLongIsTimedOut(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	w.exec("UPDATE :schema.manifest SET timeout = CASE name WHEN 'm1' THEN interval '1 second' END")
	s := w.scheduler()
	w.cycle(s)
	w.drain(s)
	n := w.count("SELECT count(*) FROM :schema.run WHERE deadline BETWEEN now() AND now() + interval '1 second'")
	if n != 1 {
		t.Errorf("%d runs have their deadline, want 1", n)
	}
	w.exec("UPDATE :schema.run SET deadline = now() WHERE deadline IS NOT NULL")
	if c := w.cycle(s); c.reaped != 1 || s.evaluator.untilDue(t.Context(), c) != 0 {
		t.Errorf("%+v, want 1 reaped, and another cycle", c)
	}
	if w.states("m1") != "schedule timed_out 1" || w.states("m2") != "schedule active 1" {
		t.Errorf("m1: %s, m2: %s", w.states("m1"), w.states("m2"))
	}
	if n := w.count("SELECT count(*) FROM :schema.manifest WHERE run IS NULL AND name = 'm1'"); n != 1 {
		t.Error("its manifest is not free")
	}
}

// A follower fires once for a success of its parent, by the edge, or when that was lost by the sweep, and not by both.
func TestFollowerFiresOnceForASuccess(t *testing.T) {
	for name, lost := range map[string]bool{"edge": false, "edge lost": true} {
		t.Run(name, func(t *testing.T) {
			w := loopsOpen(t)
			w.follower()
			if lost {
				w.exec("UPDATE :schema.manifest SET due = NULL WHERE name = 'child'")
			}
			s := w.scheduler()
			term := w.term(s, "a")
			if err := s.sweeper.sweep(t.Context(), term); err != nil {
				t.Fatal(err)
			}
			if c := w.cycle(s); c.queued != 1 {
				t.Errorf("%+v, want the child", c)
			}
			w.drain(s)
			w.end("child", "succeeded")
			for range 2 {
				if err := s.sweeper.sweep(t.Context(), term); err != nil {
					t.Fatal(err)
				}
				w.cycle(s)
			}
			if got := w.states("child"); got != "dependent succeeded 1" {
				t.Errorf("child: %s", got)
			}
			w.onceEach()
		})
	}
}

// An attempt without heartbeats is lost. The run is sent again, and the lost handler's attempt is no longer current.
func TestLostAttemptIsFenced(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(2)
	s := w.scheduler(func(o *Options) { o.LostAfter = time.Minute })
	w.cycle(s)
	w.drain(s)
	check := func(attempt int) int {
		return w.count("SELECT (:schema.run_check(ARRAY[r.id], ARRAY[$1::int], 'worker'))[1] FROM :schema.run r "+
			"JOIN :schema.manifest m ON m.id = r.manifest_id WHERE m.name = 'm1'", attempt)
	}
	if check(1) != 1 {
		t.Fatal("the first attempt is not current")
	}
	term := w.term(s, "a")
	sweep := func() {
		if err := s.sweeper.sweep(t.Context(), term); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if got := w.states("m1"); got != "schedule active 1" {
		t.Fatalf("a run that lives was given up: %s", got)
	}
	w.exec("UPDATE :schema.run SET beat = now() - interval '61 seconds' WHERE beat IS NOT NULL")
	sweep()
	sweep()
	if w.states("m1") != "schedule waiting 1" || w.states("m2") != "schedule active 1" {
		t.Errorf("m1: %s, m2: %s", w.states("m1"), w.states("m2"))
	}
	w.exec("UPDATE :schema.run SET ready = now() WHERE state = 'waiting'")
	w.drain(s)
	if check(1) != 0 || check(2) != 1 {
		t.Error("the lost attempt is current, or the second is not")
	}
	if got := w.text("SELECT string_agg(coalesce(outcome, '-'), ' ' ORDER BY attempt) FROM :schema.run_attempt " +
		"WHERE run = (SELECT run FROM :schema.run_attempt WHERE attempt = 2)"); got != "lost -" {
		t.Errorf("attempts: %s", got)
	}
}

// An orphan is deleted at the same age as its runs, and after them; an orphan that was declared again or whose run
// has not ended stays. If there are too many, the oldest go sooner, but never within their grace.
func TestOrphansAreForgottenWithTheirRuns(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(5)
	s := w.scheduler()
	w.cycle(s)
	w.drain(s)
	for _, m := range []string{"m1", "m3", "m4", "m5"} {
		w.end(m, "succeeded")
	}
	w.exec(`UPDATE :schema.manifest SET orphaned_at = now() - CASE name WHEN 'm3' THEN interval '29 days'
		ELSE interval '31 days' END, live = false WHERE name <> 'm4'`)
	w.exec("DELETE FROM :schema.run r USING :schema.manifest m WHERE m.id = r.manifest_id AND m.name = 'm5'")
	term := w.term(s, "a")
	sweep := func() {
		t.Helper()
		for range 2 {
			if err := s.sweeper.sweep(t.Context(), term); err != nil {
				t.Fatal(err)
			}
		}
	}
	sweep()
	if got := w.text("SELECT string_agg(name, ' ' ORDER BY name) FROM :schema.manifest"); got != "m2 m3 m4" {
		t.Errorf("left: %s, want m2 (its run is active), m3 (its runs are kept) and m4 (declared)", got)
	}
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, live, orphaned_at)
		SELECT 'o' || n, '{}', 'ping', '', false, now() - CASE WHEN n <= 9995
			THEN interval '1 hour' + n * interval '1 s' ELSE interval '4 minutes' END FROM generate_series(1, 10010) n`)
	sweep()
	if got := w.text("SELECT count(*) || ' ' || count(*) FILTER (WHERE name = 'm3') || ' ' || count(*) FILTER " +
		"(WHERE orphaned_at > now() - interval '5 minutes') FROM :schema.manifest WHERE name <> 'm2' AND " +
		"orphaned_at IS NOT NULL"); got != "10000 0 15" {
		t.Errorf("left: %s, want 10,000, without m3, the oldest, and with the 15 within their grace", got)
	}
}

// A release keeps its number as long as an orphan is kept, and the last hundred of each owner stay longer; a program
// that died is deleted, and its release counts as seen until then.
func TestReleasesAreForgotten(t *testing.T) {
	w := loopsOpen(t)
	w.exec(`INSERT INTO :schema.manifest_release (owner, digest, manifests, sums, groups, seen)
		SELECT 'shop', ('r' || n)::bytea, '{}', '{}', '{}', now() - CASE n WHEN 101 THEN interval '31 days'
			WHEN 2 THEN interval '31 days' ELSE interval '6 minutes' END FROM generate_series(1, 103) n`)
	w.exec(`INSERT INTO :schema.manifest_program (id, release, host, pid, expires)
		SELECT gen_random_uuid(), r.number, 'h', 1, now() + CASE r.digest WHEN 'r2' THEN interval '1 minute'
			ELSE interval '-2 minutes' END FROM :schema.manifest_release r WHERE r.digest IN ('r2', 'r3')`)
	s := w.scheduler()
	if err := s.sweeper.sweep(t.Context(), w.term(s, "a")); err != nil {
		t.Fatal(err)
	}
	if got := w.text("SELECT string_agg(convert_from(r.digest, 'UTF8'), ' ' ORDER BY r.number) FILTER (WHERE " +
		"r.number < 5 OR r.number > 100) FROM :schema.manifest_release r"); got != "r2 r3 r4 r102 r103" {
		t.Errorf("left: %s, want r2 (it runs), r3 (it ran within the grace), and neither r1 (one too many) nor r101 "+
			"(old)", got)
	}
	if n := w.count("SELECT count(*) FROM :schema.manifest_program"); n != 1 {
		t.Errorf("%d programs are left, want the one that runs", n)
	}
	all, err := Releases(t.Context(), w.owner, w.schema, "shop")
	decides := slices.IndexFunc(all, func(r Release) bool { return r.Decides })
	if err != nil || decides < 1 || len(all[decides].Programs) != 1 {
		t.Errorf("%d of %d releases decides (%v), want r2, which alone has a program", decides, len(all), err)
	}
}

// A run that is timed out or lost, and a due time without a run, is logged, and shown on the pages.
func TestEndsThatNobodyAskedForAreTold(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(4)
	var log bytes.Buffer
	s := w.scheduler(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.cycle(s)
	w.drain(s)
	w.exec("UPDATE :schema.run r SET deadline = now() - interval '1 s' FROM :schema.manifest m " +
		"WHERE m.id = r.manifest_id AND m.name = 'm1'")
	w.exec("UPDATE :schema.run r SET beat = now() - interval '1 hour' FROM :schema.manifest m " +
		"WHERE m.id = r.manifest_id AND m.name = 'm2'")
	w.end("m3", "succeeded")
	w.end("m4", "dead")
	w.exec("UPDATE :schema.manifest SET due = now() - interval '150 minutes' WHERE name = 'm3'")
	w.exec("UPDATE :schema.manifest SET orphaned_at = now(), live = false WHERE name = 'm2'")
	term := w.term(s, "a")
	for range 2 {
		w.cycle(s)
		if err := s.sweeper.sweep(t.Context(), term); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`is timed out" manifest=m1 run=`, `gave no sign of life" manifest=m2 run=`,
		`passed without a run" manifest=m3 due=`, "missed=2"} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("the log has %d times %q:\n%s", n, want, &log)
		}
	}
	all, err := Troubles(t.Context(), w.owner, w.schema)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, one := range all {
		told[one.Kind] = fmt.Sprintf("%v %d %d", one.Manifests, one.Of, one.Times)
	}
	want := map[string]string{"timed_out": "[m1] 1 1", "lost": "[m2] 1 1", "orphan": "[m2] 1 1", "skipped": "[m3] 1 2",
		"dead": "[m4] 1 1"}
	if !maps.Equal(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
	w.exec("UPDATE :schema.run SET ended = now() - interval '25 hours' WHERE state = 'timed_out'")
	w.exec("UPDATE :schema.run_attempt SET ended = now() - interval '25 hours' WHERE outcome = 'lost'")
	w.exec("UPDATE :schema.manifest SET removed_at = now(), skipped_at = now() - interval '25 hours'")
	if all, err = Troubles(t.Context(), w.owner, w.schema); err != nil || len(all) != 1 || all[0].Kind != "dead" {
		t.Errorf("a day later, and after a person has removed the orphan: %+v, %v", all, err)
	}
}

// Two servers clean up together: old runs are deleted once, and deleting a missing run is no error. Neither waits for
// the other.
func TestTwoServersCleanUpTogether(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 2500, 0)
	w.exec("UPDATE :schema.run SET state = 'succeeded', attempt = 1, ended = now() - interval '31 days'")
	w.exec("INSERT INTO :schema.run_attempt (run, attempt, message_id) SELECT id, 1, id FROM :schema.run")
	w.queued("young", 3, 0)
	w.exec("UPDATE :schema.run SET state = 'succeeded', ended = now() - interval '29 days' WHERE state = 'queued'")
	w.queued("dead", 2, 0)
	w.exec("UPDATE :schema.run SET state = 'dead', due = now() - interval '1 year', queued = now() - interval '1 " +
		"year' WHERE state = 'queued'")
	busy, err := w.owner.Begin(t.Context()) // a third server, in the middle of its clean-up
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Rollback(context.WithoutCancel(t.Context()))
	if _, err := busy.Exec(t.Context(), w.scheduler().core.sql.Get("clean"), int64(0), 7); err != nil {
		t.Fatal(err)
	}
	w.atOnce(2, func(int) error { return w.scheduler().cleaner.cleanOnce(t.Context()) })
	if n := w.count("SELECT count(*) FROM :schema.run WHERE ended < now() - interval '30 days'"); n != 7 {
		t.Errorf("%d old runs are left beside a clean-up that has 7 in hand", n)
	}
	if err := busy.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.scheduler().cleaner.cleanOnce(t.Context()); err != nil {
		t.Error(err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run"); n != 5 ||
		w.count("SELECT count(*) FROM :schema.run_attempt") != 0 {
		t.Errorf("%d runs are left, want 5 and no attempts of others", n)
	}
}

// A run that a different transaction has locked is left for the next clean-up. The others are deleted, without
// waiting.
func TestCleanUpWaitsForNobody(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 3, 0)
	w.exec("UPDATE :schema.run SET state = 'succeeded', ended = now() - interval '31 days'")
	tx, err := w.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), w.schema.Render("SELECT FROM :schema.run LIMIT 1 FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	s := w.scheduler()
	if err := s.cleaner.cleanOnce(t.Context()); err != nil {
		t.Errorf("a run is locked: %v", err)
	}
	if n := w.count("SELECT count(*) FROM :schema.run"); n != 1 {
		t.Errorf("%d runs are left, want the one that is locked", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.cleaner.cleanOnce(t.Context()); err != nil || w.count("SELECT count(*) FROM :schema.run") != 0 {
		t.Errorf("the last one is left: %v", err)
	}
}

// A variance delays the run, by the same time on every server.
func TestVarianceDelaysTheRun(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(1)
	w.exec(`UPDATE :schema.manifest SET definition = '{"rule":{"kind":"every","every":3600000000000},` +
		`"variance":86400000000000}'`)
	s := w.scheduler()
	w.cycle(s)
	if _, err := s.dispatcher.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.states("m1"); got != "schedule waiting 0" {
		t.Errorf("m1: %s", got)
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE ready > due AND ready < due + interval '1 day'"); n != 1 {
		t.Error("it is not ready within a day")
	}
	if wait := s.core.untilNext(t.Context(), s.core.sql["next_ready"]); wait <= 0 || wait > 24*time.Hour {
		t.Errorf("the dispatcher would sleep %v", wait)
	}
}

func TestOptionsNameTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]Options{
		"Evaluate": {Evaluate: -1}, "Dispatch": {Dispatch: -1}, "Reconcile": {Reconcile: -1}, "Clean": {Clean: -1},
		"MaxActive": {MaxActive: -1}, "MaxConcurrentDispatch": {MaxConcurrentDispatch: 101},
		"MaxDispatchAttempts": {MaxDispatchAttempts: -1},
		"Retention":           {Retention: -1}, "OrphanGrace": {OrphanGrace: -1}, "LostAfter": {LostAfter: -1},
	} {
		if _, err := o.withDefaults(); err == nil || !strings.HasPrefix(err.Error(), field+" is ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if o, err := (Options{}).withDefaults(); err != nil || o.Evaluate != time.Second || o.MaxActive != 0 ||
		o.MaxConcurrentDispatch != 1 || o.MaxDispatchAttempts != 5 {
		t.Errorf("%+v, %v", o, err)
	}
}
