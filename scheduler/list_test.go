package scheduler

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestManifestPages(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", many(5, "m")...)
	s.sync("bank", every("x"))
	s.must(s.Pause(s.ctx(), "m/00003", "r"))
	for _, c := range []struct {
		f    ManifestFilter
		want string
	}{
		{ManifestFilter{}, "m/00000 m/00001 m/00002 m/00003 m/00004 x"},
		{ManifestFilter{Limit: 2}, "m/00000 m/00001"},
		{ManifestFilter{Limit: 2, After: "m/00001"}, "m/00002 m/00003"},
		{ManifestFilter{Prefix: "m/", After: "m/00003"}, "m/00004"},
		{ManifestFilter{Owner: "bank"}, "x"},
		{ManifestFilter{State: ManifestPaused}, "m/00003"},
		{ManifestFilter{Group: "g"}, ""},
	} {
		list, err := s.Manifests(s.ctx(), c.f)
		s.must(err)
		var names []string
		for _, m := range list {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	_, err := s.Manifests(s.ctx(), ManifestFilter{Limit: 1001})
	refuses(t, err, "Limit: 1001")
	_, err = s.Manifests(s.ctx(), ManifestFilter{State: "x"})
	refuses(t, err, "State")
	_, err = s.Manifest(s.ctx(), "m/0000")
	refuses(t, err, "there is no such manifest")
}

func TestRunPages(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	m.Group = "g"
	_, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g"}}, []Manifest{m, every("b")})
	s.must(err)
	var ids []saga.ID
	for n := range 6 {
		id, err := s.Trigger(s.ctx(), []string{"a", "b"}[n%2], nil, TriggerOptions{})
		s.must(err)
		ids = append(ids, id)
	}
	s.must(s.Cancel(s.ctx(), ids[4], ""))
	now := s.info("a").History.Now
	for _, c := range []struct {
		f    RunFilter
		want []int
	}{
		{RunFilter{}, []int{5, 4, 3, 2, 1, 0}},
		{RunFilter{Limit: 2}, []int{5, 4}},
		{RunFilter{After: ids[2]}, []int{1, 0}},
		{RunFilter{Manifest: "a"}, []int{4, 2, 0}},
		{RunFilter{Group: "g", State: RunQueued}, []int{2, 0}},
		{RunFilter{State: RunCancelled}, []int{4}},
		{RunFilter{Since: now}, nil},
		{RunFilter{Until: now, Since: now.Add(-time.Hour), Manifest: "b"}, []int{5, 3, 1}},
	} {
		list, err := s.Runs(s.ctx(), c.f)
		s.must(err)
		var got, want []saga.ID
		for _, r := range list {
			got = append(got, r.ID)
		}
		for _, n := range c.want {
			want = append(want, ids[n])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.f, diff)
		}
	}
	for says, f := range map[string]RunFilter{"no such manifest": {Manifest: "x"}, "no such group": {Group: "x"},
		"State": {State: "x"}, "Limit": {Limit: -1}} {
		_, err := s.Runs(s.ctx(), f)
		refuses(t, err, says)
	}
	counts, err := s.Counts(s.ctx())
	if err != nil || counts != (RunCounts{Queued: 5}) {
		t.Errorf("%+v, %v", counts, err)
	}
	groups, err := s.Groups(s.ctx())
	if err != nil || len(groups) != 1 || groups[0].Queued != 2 || groups[0].Manifests != 1 ||
		groups[0].Owner != "shop" {
		t.Errorf("%+v, %v", groups, err)
	}
}

func TestWhyItDoesNotFire(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	m.Group = "g"
	declare := func() {
		_, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g", Max: 1}}, []Manifest{
			m, {Name: "f", When: After("a"), Message: settle{}}, {Name: "d", When: Dormant("a"), Message: settle{}},
			{Name: "o", When: OnDemand(), Message: settle{}},
			{Name: "late", When: Once(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)), Message: settle{}},
		})
		s.must(err)
	}
	declare()
	says := func(name string, parts ...string) {
		t.Helper()
		got := strings.Join(s.info(name).Waits(), "\n")
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s waits, it is said:\n%s\nand not %q", name, got, part)
			}
		}
	}
	says("a", "It is due since", "edda lease list")
	says("f", "when a succeeds", "never")
	says("d", "when a run of a activates it")
	says("o", "when it is triggered")
	s.exec("UPDATE :schema.manifest SET due = NULL WHERE name = 'late'")
	says("late", "never due again")
	s.exec("UPDATE :schema.manifest SET due = clock_timestamp() + interval '1 hour' WHERE name = 'a'")
	says("a", "Nothing is due until 20")
	run := s.started("a")
	says("a", "Its run "+run.String()+" is active")
	s.ends(run, "dead")
	says("a", "when its dead run "+run.String()+" is retried or cancelled", "it broke")
	s.must(s.Pause(s.ctx(), "a", "the bank is down"))
	s.must(s.PauseGroup(s.ctx(), "g", "all of it"))
	m.Paused = true
	declare()
	says("a", "dead run", "Its declaration has Paused set", "(the bank is down)", "Its group g is paused",
		"(all of it)")
	s.must(s.Remove(s.ctx(), "a"))
	says("a", "It is an orphan since", "no running program")
	s.exec(`UPDATE :schema.manifest SET definition = '{"rule": {"kind": "moon"}}' WHERE name = 'o'`)
	says("o", "cannot be read", "moon")
	s.exec("DELETE FROM :schema.manifest WHERE name = 'a'")
	says("f", "That manifest does not exist any more")
}

func TestDeclarationFile(t *testing.T) {
	s := newShelf(t)
	a, b := every("a"), every("b")
	a.Group, a.Timeout, a.Exclude = "g", NoTimeout,
		[]Exclusion{{Days: []time.Weekday{time.Sunday}, Of: Window{TimeOfDay{Hour: 1}, TimeOfDay{Hour: 2}}}}
	b.Message, b.Misfire, b.Variance = saga.Raw{Name: "bytes", Body: []byte{0, 255}}, MisfireAll, time.Minute
	d := Declaration{"shop", []Group{{Name: "g", Max: 3, Strict: true}},
		[]Manifest{a, b, {Name: "f", When: After("a"), Message: settle{}}}}
	text, err := MarshalDeclaration(d, nil)
	s.must(err)
	changes, err := s.DiffDeclaration(s.ctx(), text)
	s.must(err)
	if len(changes.Created) != 3 || len(changes.Groups.Created) != 1 {
		t.Errorf("%+v", changes)
	}
	_, err = s.Sync(s.ctx(), d.Owner, d.Groups, d.Manifests)
	s.must(err)
	if changes, err = s.DiffDeclaration(s.ctx(), text); err != nil || !changes.None() {
		t.Errorf("%v, %+v\n%s", err, changes, text)
	}
	changes, err = s.DiffDeclaration(s.ctx(), bytes.Replace(text, []byte(`"max": 3`), []byte(`"max": 4`), 1))
	if err != nil || len(changes.Groups.Changed) != 1 {
		t.Errorf("%v, %+v", err, changes)
	}
	for says, text := range map[string]string{
		"EOF": "", "unknown field": `{"edda_declaration": 1, "x": 1}`,
		"edda_declaration is 2": `{"edda_declaration": 2}`, "owner": `{"edda_declaration": 1}`,
		`manifest "a"`: `{"edda_declaration": 1, "owner": "o", "manifests": [{"name": "a"}]}`,
	} {
		_, err := s.DiffDeclaration(s.ctx(), []byte(text))
		refuses(t, err, says, "declaration")
	}
	_, err = MarshalDeclaration(Declaration{Owner: "o", Manifests: []Manifest{{Name: "a"}}}, nil)
	refuses(t, err, "manifest a")
}

// Methods that only read must work in a read-only session.
func TestLooksWriteNothing(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"))
	run, err := s.Trigger(s.ctx(), "a", nil, TriggerOptions{})
	s.must(err)
	const all = "SELECT (SELECT string_agg(m::text, ',' ORDER BY id) FROM :schema.manifest m) || (SELECT " +
		"string_agg(r::text, ',' ORDER BY id) FROM :schema.run r)"
	before := s.ask(all)
	config := s.pool.Config()
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	s.must(s.onPool(config))
	_, err = s.Diff(s.ctx(), "shop", nil, []Manifest{every("b")})
	s.must(err)
	_, err = s.Next(s.ctx(), "a", 10)
	s.must(err)
	_, err = s.Manifests(s.ctx(), ManifestFilter{})
	s.must(err)
	_, err = s.Runs(s.ctx(), RunFilter{})
	s.must(err)
	_, err = s.RunOf(s.ctx(), run)
	s.must(err)
	_, err = s.Groups(s.ctx())
	s.must(err)
	_, err = s.Store.pool.Exec(s.ctx(), s.schema.Render("UPDATE :schema.manifest SET reason = 'x'"))
	refuses(t, err, "read-only")
	s.says("as it was", before, all)
}

func TestStoreReachesItsRowsByIndex(t *testing.T) {
	s := newShelf(t)
	const run = "SELECT coalesce(max(id::text), '00000000-0000-0000-0000-000000000000') FROM :schema.run WHERE " +
		"state = 'queued'"
	const runs = "SELECT coalesce(array_agg(id), '{}')::text FROM (SELECT id FROM :schema.run WHERE state = " +
		"'queued' ORDER BY id DESC LIMIT 2) x"
	const manifest = "SELECT coalesce(max(id), 0)::text FROM :schema.manifest WHERE name = 'm/500'"
	const group = "SELECT coalesce(max(id), 0)::text FROM :schema.manifest_group WHERE name = 'g500'"
	low, high := saga.ID{}.String(), strings.Repeat("f", 8)+"-ffff-ffff-ffff-"+strings.Repeat("f", 12)
	mode := ""
	s.must(s.change(s.ctx(), func(tx pgx.Tx) error {
		return tx.QueryRow(s.ctx(), "SHOW plan_cache_mode").Scan(&mode)
	}))
	if mode != "force_custom_plan" {
		t.Errorf("the plan_cache_mode of a change is %s: it may keep plans of empty tables", mode)
	}
	pgtest.Probes{
		SQL: s.Store.sql,
		Statements: map[string][]string{
			"manifest_id": {"m/500"}, "group_id": {"g500"}, "pause": {"m/500", "r", "ann"}, "resume": {"m/500"},
			"pause_group": {"g500", "r", "ann"}, "manifest_state": {"m/500"}, "group_state": {"g500"},
			"ancestors":     {"{m/500}"},
			"enliven_group": {group},
			"lock_runs":     {runs}, "cancel_runs": {runs, "n"}, "retry_run": {run, "n"}, "wait_for_run": {run},
			"trigger": {"m/500", "00000000-0000-7000-8000-00000000000a", "0", "0", "account.settle", `\x00`},
			"activate": {"m/500", "00000000-0000-7000-8000-00000000000b", "1", "m/1",
				"00000000-0000-7000-8000-00000000000a", "account.settle", `\x00`},
			"backfill":        {manifest, "{00000000-0000-7000-8000-00000000000a}", "{2020-01-01}"},
			"stored_schedule": {"m/500"},
			"runs_of_group":   {group, "2100-01-01", "50"},
			"runs_not_sent":   {manifest, "2100-01-01", "50"}, "orphan": {"{1}", "f"}, "attempts": {run, "10"},
		},
		Fill: shelves, MaxRows: 250, PlannedAnew: true,
	}.Check(t, s.pool, s.schema)
	pool, schema := pgtest.Database(t) // a new database: the first may count rows that were rolled back
	pgtest.Probes{
		SQL: pg.Load(storeStatements, schema),
		Statements: map[string][]string{
			"stored_manifests": {"{m/500,m/501}", "shop", "f"}, // with all groups, which are few
			"list_manifests":   {"m/500", "", "m/500", "", "", "", "t", "1"},
			"list_runs":        {low, high, manifest, "0", "", "2000-01-01", "2100-01-01", "f", "20"},
		},
		Settings: []string{"SET LOCAL enable_seqscan = off"},
		Fill:     shelves, MaxRows: 250, PlannedAnew: true,
	}.Check(t, pool, schema)
}

// shelves creates 2,000 manifests in as many groups, with 20 runs each: one queued, one active, the others ended.
const shelves = `INSERT INTO :schema.manifest_group (name, owner) SELECT 'g' || n, 'bank' FROM generate_series(1,
	2000) n;
INSERT INTO :schema.manifest (name, owner, definition, group_id, kind, body) SELECT 'm/' || n, 'bank', '{}', g.id,
'account.settle', ''
	FROM generate_series(1, 2000) n JOIN :schema.manifest_group g ON g.name = 'g' || n;
INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready, ended)
	SELECT gen_random_uuid(), m.id, m.group_id, 'manual', CASE n WHEN 20 THEN 'queued' WHEN 19 THEN 'active'
	ELSE 'succeeded' END, now(), now(), CASE WHEN n < 19 THEN now() END
	FROM :schema.manifest m, generate_series(1, 20) n;
INSERT INTO :schema.run_attempt (run, attempt, message_id) SELECT r.id, 1, gen_random_uuid() FROM :schema.run r`

// The runtime role may do every operation.
func TestManagementAsTheRuntimeRole(t *testing.T) {
	s := newShelf(t)
	config := s.pool.Config()
	if !pgtest.AsRuntime() {
		pgtest.Become(config, pgtest.Runtime(t, s.pool, s.schema.Name()))
	}
	s.must(s.onPool(config))
	for _, do := range []func() error{
		func() error {
			_, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g"}},
				[]Manifest{every("a"), every("b"), {Name: "d", When: Dormant("a"), Message: settle{}}})
			return err
		},
		func() error { return s.Put(s.ctx(), every("c")) },
		func() error { return s.Remove(s.ctx(), "c") },
		func() error { return s.Pause(s.ctx(), "a", "r") },
		func() error { return s.Resume(s.ctx(), "a") },
		func() error { return s.PauseGroup(s.ctx(), "g", "r") },
		func() error { return s.ResumeGroup(s.ctx(), "g") },
		func() error { return s.SetGroup(s.ctx(), Group{Name: "h", Max: 1}) },
		func() error {
			_, err := s.Backfill(s.ctx(), "a", Period{From: time.Now().Add(-5 * time.Hour), Until: time.Now()})
			return err
		},
		func() error {
			run, err := s.Trigger(s.ctx(), "a", nil, TriggerOptions{})
			if err != nil {
				return err
			}
			if err := s.Cancel(s.ctx(), run, ""); err != nil {
				return err
			}
			return s.Retry(s.ctx(), run, "")
		},
		func() error { _, err := s.CancelGroup(s.ctx(), "g", ""); return err },
		func() error { _, err := s.Counts(s.ctx()); return err },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
}
