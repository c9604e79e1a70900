package scheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// started creates a run of a manifest that is active in its first attempt, as a dispatcher would.
func (s *shelf) started(manifest string) saga.ID {
	s.Helper()
	id := dispatch.NewRunID()
	s.exec(`INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, attempt, message_id)
		SELECT $2, id, coalesce(group_id, 0), 'schedule', 'active', clock_timestamp(), clock_timestamp(), 1, $2
		FROM :schema.manifest WHERE name = $1`, manifest, id)
	s.exec("INSERT INTO :schema.run_attempt (run, attempt, message_id) VALUES ($1, 1, $1)", id)
	s.exec("UPDATE :schema.manifest SET run = $2 WHERE name = $1", manifest, id)
	return id
}

func (s *shelf) ends(run saga.ID, outcome string) (current bool) {
	s.Helper()
	return s.ask("SELECT cardinality(:schema.run_end(ARRAY[$1::uuid], ARRAY[(SELECT attempt FROM :schema.run WHERE "+
		"id = $1)], ARRAY[$2], ARRAY['it broke']))", run, outcome) == "1"
}

func (s *shelf) state(run saga.ID) RunState {
	s.Helper()
	r, err := s.RunOf(s.ctx(), run)
	s.must(err)
	return r.State
}

func (s *shelf) info(name string) ManifestInfo {
	s.Helper()
	m, err := s.Manifest(s.ctx(), name)
	s.must(err)
	return m
}

// live returns the column live, and fails the test if it differs from manifest_live.
func (s *shelf) live(name string) bool {
	s.Helper()
	if s.ask("SELECT bool_and(live = :schema.manifest_live(stopped, paused_at, orphaned_at, group_id)) FROM "+
		":schema.manifest") != "true" {
		s.Error("a column live does not say what manifest_live does")
	}
	return s.ask("SELECT live FROM :schema.manifest WHERE name = $1", name) == "true"
}

func TestEverySwitchMovesLive(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	m.Group = "g"
	declare := func() {
		t.Helper()
		_, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g"}}, []Manifest{m, every("b")})
		s.must(err)
	}
	declare()
	is := func(want bool, after string) {
		t.Helper()
		if s.live("a") != want {
			t.Errorf("live is %v after %s", !want, after)
		}
	}
	is(true, "the declaration")
	s.must(s.PauseGroup(s.ctx(), "g", "r"))
	is(false, "the group's pause")
	s.must(s.Pause(s.ctx(), "a", "r"))
	s.must(s.ResumeGroup(s.ctx(), "g"))
	is(false, "the group's end of pause, while it is paused itself")
	m.Paused = true
	declare()
	s.must(s.Resume(s.ctx(), "a"))
	is(false, "resume of what its declaration pauses")
	m.Paused = false
	declare()
	is(true, "a declaration that does not pause any more")
	s.must(s.PauseGroup(s.ctx(), "g", "r"))
	m.Group = ""
	declare()
	is(true, "it left its paused group")
	m.Group = "g"
	declare()
	is(false, "it joined a paused group")
	s.must(s.ResumeGroup(s.ctx(), "g"))
	s.must(s.Remove(s.ctx(), "a"))
	is(false, "its removal")
	s.must(s.Resume(s.ctx(), "a"))
	s.must(s.PauseGroup(s.ctx(), "g", "r"))
	s.must(s.ResumeGroup(s.ctx(), "g"))
	is(false, "resume of an orphan")
	declare()
	is(true, "its return")
	for _, err := range []error{s.Pause(s.ctx(), "no", ""), s.Resume(s.ctx(), "no"), s.Remove(s.ctx(), "no")} {
		if !errors.Is(err, ErrNoManifest) {
			t.Errorf("%v, want ErrNoManifest", err)
		}
	}
	for _, err := range []error{s.PauseGroup(s.ctx(), "no", ""), s.ResumeGroup(s.ctx(), "no")} {
		if !errors.Is(err, ErrNoGroup) {
			t.Errorf("%v, want ErrNoGroup", err)
		}
	}
	refuses(t, s.Pause(s.ctx(), "a", "\xff"), "reason", "text")
	refuses(t, s.PauseGroup(s.ctx(), "g", strings.Repeat("x", 4097)), "4097 bytes")
}

func TestPutAndRemove(t *testing.T) {
	s := newShelf(t)
	s.must(s.Put(s.ctx(), every("mine")))
	s.must(s.Put(s.ctx(), every("mine")))
	s.says("version", "1", "SELECT version FROM :schema.manifest")
	s.sync("shop", every("a"))
	if err := s.Put(s.ctx(), every("a")); !errors.Is(err, ErrOwned) {
		t.Errorf("%v, want ErrOwned", err)
	}
	if _, err := s.Sync(s.ctx(), "shop", nil, []Manifest{every("a"), every("mine")}); !errors.Is(err, ErrOwned) {
		t.Errorf("%v, want ErrOwned", err)
	}
	refuses(t, s.Put(s.ctx(), Manifest{Name: "b"}), "put manifest b", "Message")
	run, err := s.Trigger(s.ctx(), "mine", nil, TriggerOptions{Delay: time.Hour})
	s.must(err)
	sent := s.started("mine")
	s.must(s.Remove(s.ctx(), "mine"))
	s.must(s.Remove(s.ctx(), "mine"))
	if s.state(run) != RunCancelled || s.state(sent) != RunActive {
		t.Errorf("runs of a manifest that was removed: %s and %s", s.state(run), s.state(sent))
	}
	if _, err := s.Trigger(s.ctx(), "mine", nil, TriggerOptions{}); !errors.Is(err, ErrNoManifest) {
		t.Errorf("an orphan was triggered: %v", err)
	}
	s.sync("shop", every("a"), every("mine"))
	s.says("owner", "shop", "SELECT owner FROM :schema.manifest WHERE name = 'mine'")
}

func TestTriggers(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	m.Priority = 4
	s.sync("shop", m)
	s.must(s.Pause(s.ctx(), "a", "no"))
	before := s.info("a")
	for n := range 5 {
		input := saga.Message(nil)
		if n > 0 {
			input = settle{Day: "d"}
		}
		_, err := s.Trigger(s.ctx(), "a", input, TriggerOptions{Priority: n, Delay: time.Duration(n/4) * time.Hour})
		s.must(err)
	}
	s.says("runs", "manual queued 4 -, manual queued 1 {\"day\":\"d\"}, manual queued 2 {\"day\":\"d\"}, manual "+
		"queued 3 {\"day\":\"d\"}, manual waiting 4 {\"day\":\"d\"}",
		"SELECT string_agg(format('%s %s %s %s', origin, state, priority, coalesce(convert_from(body, 'UTF8'), "+
			"'-')), ', ' ORDER BY id) FROM :schema.run")
	after := s.info("a")
	if !after.Due.Equal(before.Due) || !after.Run.ID.IsZero() {
		t.Errorf("due was %v and is %v, run %s", before.Due, after.Due, after.Run)
	}
	for says, try := range map[string]func() error{
		"Delay: -1ns": func() error {
			_,
				err := s.Trigger(s.ctx(), "a", nil, TriggerOptions{Delay: -1})
			return err
		},
		"Priority: 32": func() error {
			_,
				err := s.Trigger(s.ctx(), "a", nil, TriggerOptions{Priority: 32})
			return err
		},
		"no such manifest": func() error { _, err := s.Trigger(s.ctx(), "b", nil, TriggerOptions{}); return err },
		"kind account.settle": func() error {
			_,
				err := s.Trigger(s.ctx(), "a", saga.Raw{Name: "x"}, TriggerOptions{})
			return err
		},
		"input: kind": func() error {
			_,
				err := s.Trigger(s.ctx(), "a", saga.Raw{Name: "X"}, TriggerOptions{})
			return err
		},
		"the limit is": func() error {
			_, err := s.Trigger(s.ctx(), "a", saga.Raw{Name: "account.settle", Body: make([]byte, 2<<20)},
				TriggerOptions{})
			return err
		},
	} {
		refuses(t, try(), says, "trigger manifest")
	}
	s.says("nothing more", "5", "SELECT count(*) FROM :schema.run")
}

func TestActivate(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("p"), every("q"), Manifest{Name: "d", When: Dormant("p"), Message: settle{}},
		Manifest{Name: "f", When: After("p"), Message: settle{}})
	parent, other := s.started("p"), s.started("q")
	fire := saga.Firing{Manifest: "p", Run: parent, Attempt: 1}
	run, fresh, err := s.Activate(s.ctx(), fire, "d", settle{Day: "x"})
	s.must(err)
	again, second, err := s.Activate(s.ctx(), fire, "d", nil)
	s.must(err)
	if !fresh || second || run != again {
		t.Errorf("first %s %v, second %s %v", run, fresh, again, second)
	}
	s.says("the run", `activation queued {"day":"x"}`, "SELECT format('%s %s %s', origin, state, "+
		"convert_from(body, 'UTF8')) FROM :schema.run WHERE id = $1", run)
	for says, c := range map[string]struct {
		fire     saga.Firing
		manifest string
		input    saga.Message
	}{
		"no run":                        {manifest: "d"},
		"not Dormant under q":           {fire: saga.Firing{Manifest: "q", Run: other, Attempt: 1}, manifest: "d"},
		"not Dormant under p":           {fire: fire, manifest: "f"},
		"attempt 2: the run is not":     {fire: saga.Firing{Manifest: "p", Run: parent, Attempt: 2}, manifest: "d"},
		"attempt 1: the run is not":     {fire: saga.Firing{Manifest: "p", Run: other, Attempt: 1}, manifest: "d"},
		"there is no such manifest":     {fire: fire, manifest: "x"},
		"of kind account.settle, and i": {fire: fire, manifest: "d", input: saga.Raw{Name: "x"}},
	} {
		_, _, err := s.Activate(s.ctx(), c.fire, c.manifest, c.input)
		refuses(t, err, says, "activate manifest")
	}
	// A cancel in a transaction that is rolled back has no effect.
	s.must(s.Cancel(s.ctx(), run, "n"))
	tx, err := s.pool.Begin(s.ctx())
	s.must(err)
	_, fresh, err = s.ActivateTx(s.ctx(), tx, fire, "d", nil)
	s.must(err)
	s.must(tx.Rollback(s.ctx()))
	if s.says("open", "0", "SELECT count(*) FROM :schema.run WHERE origin = 'activation' AND ended IS NULL"); !fresh {
		t.Error("a second activation, after the first has ended, is not fresh")
	}
	s.must(s.Cancel(s.ctx(), parent, ""))
	if _, _, err = s.Activate(s.ctx(), fire, "d", nil); !errors.Is(err, ErrNotCurrent) {
		t.Errorf("a run that was cancelled activates: %v", err)
	}
}

// The second handler waits until the first commits, and then finds its run.
func TestTwoHandlersActivateAtOnce(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("p"), Manifest{Name: "d", When: Dormant("p"), Message: settle{}})
	fire := saga.Firing{Manifest: "p", Run: s.started("p"), Attempt: 1}
	first, err := s.pool.BeginTx(s.ctx(), pg.ReadCommitted)
	s.must(err)
	defer func() { _ = first.Rollback(s.ctx()) }()
	run, _, err := s.ActivateTx(s.ctx(), first, fire, "d", nil)
	s.must(err)
	second, err := s.pool.Acquire(s.ctx())
	s.must(err)
	defer second.Release()
	type answer struct {
		run   saga.ID
		fresh bool
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		tx, err := second.BeginTx(s.ctx(), pg.ReadCommitted)
		if err != nil {
			answers <- answer{err: err}
			return
		}
		a := answer{}
		a.run, a.fresh, a.err = s.ActivateTx(s.ctx(), tx, fire, "d", nil)
		answers <- answer{a.run, a.fresh, errors.Join(a.err, tx.Commit(s.ctx()))}
	}()
	pgtest.AwaitBlocked(t, s.pool, second.Conn())
	s.must(first.Commit(s.ctx()))
	if a := <-answers; a.err != nil || a.fresh || a.run != run {
		t.Errorf("%+v, want run %s", a, run)
	}
	s.says("activations", "1", "SELECT count(*) FROM :schema.run WHERE origin = 'activation'")
}

func TestCancel(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"), Manifest{Name: "f", When: After("a"), Message: settle{}})
	run := s.started("a")
	s.must(s.Cancel(s.ctx(), run, "not today"))
	s.must(s.Cancel(s.ctx(), run, "twice"))
	r, err := s.RunOf(s.ctx(), run)
	s.must(err)
	if r.State != RunCancelled || r.Note != "not today" || r.Ended.IsZero() || r.Attempts[0].Outcome != "cancelled" {
		t.Errorf("%+v", r)
	}
	if m := s.info("a"); !m.Run.ID.IsZero() || m.History.Successes != 0 {
		t.Errorf("its manifest: %+v", m)
	}
	if s.ends(run, "succeeded") {
		t.Error("a run that was cancelled succeeded")
	}
	done := s.started("a")
	s.ends(done, "succeeded")
	if err := s.Cancel(s.ctx(), done, ""); !errors.Is(err, ErrEnded) {
		t.Errorf("%v, want ErrEnded", err)
	}
	if err := s.Cancel(s.ctx(), dispatch.NewRunID(), ""); !errors.Is(err, ErrNoRun) {
		t.Errorf("%v, want ErrNoRun", err)
	}
	dead := s.started("a")
	s.ends(dead, "dead")
	if m := s.info("a"); m.Held.ID != dead || m.State != ManifestHeld {
		t.Fatalf("held by %s, %s", m.Held, m.State)
	}
	s.must(s.Cancel(s.ctx(), dead, "never mind"))
	if m := s.info("a"); !m.Held.ID.IsZero() || m.State != ManifestLive {
		t.Errorf("still held by %s, %s", m.Held, m.State)
	}
}

// The transaction that locks the run first decides; the other finds it ended.
func TestCancelMeetsAnEndOnItsWay(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"))
	for _, endsFirst := range []bool{true, false} {
		run := s.started("a")
		first, err := s.pool.BeginTx(s.ctx(), pg.ReadCommitted)
		s.must(err)
		defer func() { _ = first.Rollback(s.ctx()) }()
		const end = "SELECT cardinality(:schema.run_end(ARRAY[$1::uuid], ARRAY[1], ARRAY['succeeded'], ARRAY['']))"
		current, errs := -1, make(chan error, 1)
		second, err := s.pool.Acquire(s.ctx())
		s.must(err)
		if endsFirst {
			s.must(first.QueryRow(s.ctx(), s.schema.Render(end), run).Scan(&current))
		} else {
			s.must(s.cancelOne(s.ctx(), first, run, ""))
		}
		go func() {
			if endsFirst {
				errs <- pgx.BeginTxFunc(s.ctx(), second, pg.ReadCommitted,
					func(tx pgx.Tx) error { return s.cancelOne(s.ctx(), tx, run, "") })
			} else {
				errs <- pg.Conn{Conn: second.Conn()}.Row(s.ctx(), s.schema.Render(end), run).Scan(&current)
			}
		}()
		pgtest.AwaitBlocked(t, s.pool, second.Conn())
		s.must(first.Commit(s.ctx()))
		err = <-errs
		second.Release()
		switch {
		case endsFirst && (!errors.Is(err, ErrEnded) || current != 1 || s.state(run) != RunSucceeded):
			t.Errorf("the end came first: %v, %d current, the run %s", err, current, s.state(run))
		case !endsFirst && (err != nil || current != 0 || s.state(run) != RunCancelled):
			t.Errorf("the cancel came first: %v, %d current, the run %s", err, current, s.state(run))
		}
		if m := s.info("a"); !m.Run.ID.IsZero() {
			t.Errorf("the manifest waits for %s", m.Run)
		}
	}
	s.says("successes", "1", "SELECT successes FROM :schema.manifest")
}

func TestCancelGroup(t *testing.T) {
	s := newShelf(t)
	var all []Manifest
	for _, m := range many(30, "m") {
		m.Group = "g"
		all = append(all, m)
	}
	_, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g"}}, append(all, every("other")))
	s.must(err)
	s.exec(`INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready)
		SELECT gen_random_uuid(), m.id, coalesce(m.group_id, 0), 'manual', (ARRAY['waiting', 'queued', 'active',
		'dead'])[1 + n % 4], now(), now()
		FROM :schema.manifest m, generate_series(1, 40) n`)
	n, err := s.CancelGroup(s.ctx(), "g", "the bank is down")
	if err != nil || n != 900 {
		t.Errorf("%d cancelled, %v, want 900", n, err)
	}
	s.says("what is left", "dead 310, waiting 10, queued 10, active 10",
		"SELECT string_agg(format('%s %s', state, n), ', ' ORDER BY n DESC, state DESC) FROM (SELECT state, "+
			"count(*) AS n FROM :schema.run WHERE ended IS NULL GROUP BY state) x")
	n, err = s.CancelGroup(s.ctx(), "g", "")
	if err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
	if _, err := s.CancelGroup(s.ctx(), "no", ""); !errors.Is(err, ErrNoGroup) {
		t.Errorf("%v, want ErrNoGroup", err)
	}
}

func TestRetry(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"))
	run := s.started("a")
	refuses(t, s.Retry(s.ctx(), run, ""), "it is active")
	s.ends(run, "dead")
	s.must(s.Retry(s.ctx(), run, "the disk is free again"))
	s.must(s.Retry(s.ctx(), run, "twice"))
	r, err := s.RunOf(s.ctx(), run)
	s.must(err)
	if m := s.info("a"); r.State != RunQueued || r.Attempt != 1 || r.Note != "the disk is free again" ||
		!m.Held.ID.IsZero() || m.Run.ID != run {
		t.Errorf("run %+v\nmanifest %+v", r, m)
	}
	s.exec("UPDATE :schema.run SET state = 'active', attempt = 2 WHERE id = $1", run)
	s.ends(run, "succeeded")
	if err := s.Retry(s.ctx(), run, ""); !errors.Is(err, ErrEnded) {
		t.Errorf("%v, want ErrEnded", err)
	}
	if err := s.Retry(s.ctx(), dispatch.NewRunID(), ""); !errors.Is(err, ErrNoRun) {
		t.Errorf("%v, want ErrNoRun", err)
	}
	// A second dead run of the manifest still holds it.
	one, two := s.started("a"), s.started("a")
	s.ends(one, "dead")
	s.ends(two, "dead")
	s.must(s.Retry(s.ctx(), two, ""))
	if m := s.info("a"); m.Held.ID != one {
		t.Errorf("held by %s, want %s", m.Held, one)
	}
	// A run that was never sent finds a different run in its place.
	s.exec("UPDATE :schema.run SET state = 'cancelled', attempt = 0, ended = now() WHERE id = $1", two)
	s.exec("UPDATE :schema.run SET state = 'queued', attempt = 0 WHERE id = $1", one)
	if err := s.Retry(s.ctx(), two, ""); !errors.Is(err, ErrTaken) {
		t.Errorf("%v, want ErrTaken", err)
	}
}

func TestBackfill(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", Manifest{Name: "night", When: Cron("0 2 * * *", "UTC"), Message: settle{}},
		Manifest{Name: "x", When: OnDemand(), Message: settle{}}, every("hour"))
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	s.exec("INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, ended) SELECT gen_random_uuid(), " +
		"id, 'schedule', 'succeeded', '2024-01-03 02:00+00', now(), now() FROM :schema.manifest WHERE name = 'night'")
	p := Period{From: from, Until: from.AddDate(0, 0, 10)}
	dry, err := s.Backfill(s.ctx(), "night", Period{From: p.From, Until: p.Until, Max: 4, DryRun: true})
	if err != nil || len(dry.Times) != 4 || !dry.Times[0].Equal(from.Add(2*time.Hour)) || dry.Queued != 0 ||
		!dry.Next.Equal(from.Add(98*time.Hour)) {
		t.Errorf("a dry run is %+v, %v", dry, err)
	}
	s.says("a dry run writes nothing", "1", "SELECT count(*) FROM :schema.run")
	for _, want := range []Backfilled{{Queued: 9, Present: 1}, {Present: 10}} {
		got, err := s.Backfill(s.ctx(), "night", p)
		s.must(err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	p.Until, p.Max = from.AddDate(3, 0, 0), 700
	got, err := s.Backfill(s.ctx(), "night", p)
	if want := time.Date(2025, 12, 1, 2, 0, 0, 0, time.UTC); err != nil || got.Queued != 690 || !got.Next.Equal(want) {
		t.Errorf("%+v, %v", got, err)
	}
	// Due times that the schedule itself will fire are not backfilled.
	got, err = s.Backfill(s.ctx(), "hour", Period{From: time.Now().Add(-10 * time.Hour),
		Until: time.Now().Add(10 * time.Hour)})
	if err != nil || got.Queued < 9 || got.Queued > 10 {
		t.Errorf("%+v, %v", got, err)
	}
	s.says("none at or after due", "0", "SELECT count(*) FROM :schema.run r JOIN :schema.manifest m ON m.id = "+
		"r.manifest_id WHERE r.due >= m.due")
	for says, c := range map[string]struct {
		name string
		p    Period
	}{
		"no such manifest": {"no", p}, "no due times to fill": {"x", p},
		"want two times": {"night", Period{From: from, Until: from}},
		"Max: -1":        {"night", Period{Max: -1}}, "Max: 10001": {"night", Period{Max: 10_001}},
	} {
		_, err := s.Backfill(s.ctx(), c.name, c.p)
		refuses(t, err, says, "backfill manifest")
	}
}

func TestNextOfAStoredManifest(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", Manifest{Name: "night", When: Cron("0 2 * * *", "Europe/Oslo"), Message: settle{}},
		Manifest{Name: "x", When: OnDemand(), Message: settle{}})
	s.exec("UPDATE :schema.manifest SET due = '2024-03-30 01:00+00' WHERE name = 'night'")
	times, err := s.Next(s.ctx(), "night", 3)
	s.must(err)
	var got []string
	for _, at := range times {
		got = append(got, at.Format(time.RFC3339))
	}
	if want := []string{"2024-03-30T02:00:00+01:00", "2024-03-31T03:00:00+02:00",
		"2024-04-01T02:00:00+02:00"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if times, err := s.Next(s.ctx(), "x", 3); err != nil || len(times) > 0 {
		t.Errorf("%v, %v", times, err)
	}
	if _, err := s.Next(s.ctx(), "no", 3); !errors.Is(err, ErrNoManifest) {
		t.Errorf("%v, want ErrNoManifest", err)
	}
	_, err = s.Next(s.ctx(), "night", 0)
	refuses(t, err, "0 due times")
}

// A change that frees a manifest, or queues a run, notifies the listeners when it commits.
func TestChangesWakeSchedulers(t *testing.T) {
	s := newShelf(t)
	conn, err := pgtest.Direct(t, s.pool).Acquire(s.ctx())
	s.must(err)
	defer conn.Release()
	if _, err := conn.Exec(s.ctx(), "LISTEN "+s.schema.Channel()); err != nil {
		t.Fatal(err)
	}
	var run saga.ID
	for _, step := range []struct {
		what, want string
		do         func() error
	}{
		{"sync", "evaluate", func() error { s.sync("shop", every("a")); return nil }},
		{"trigger", "dispatch", func() (err error) {
			run,
				err = s.Trigger(s.ctx(), "a", nil, TriggerOptions{})
			return err
		}},
		{"cancel", "evaluate", func() error { return s.Cancel(s.ctx(), run, "") }},
		{"retry", "dispatch", func() error { return s.Retry(s.ctx(), run, "") }},
		{"resume", "evaluate", func() error { return s.Resume(s.ctx(), "a") }},
	} {
		s.must(step.do())
		if n, err := conn.Conn().WaitForNotification(s.ctx()); err != nil || n.Payload != step.want {
			t.Errorf("%s: %+v, %v, want %s", step.what, n, err, step.want)
		}
	}
	if _, err := conn.Exec(s.ctx(), "UNLISTEN *"); err != nil {
		t.Error(err)
	}
}
