package scheduler

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/engine/dispatch"
)

// runs declares as a running program does, and returns a function that declares again.
func (s *shelf) runs(grace time.Duration, groups []Group, manifests ...Manifest) (d declaration, again func() Changes) {
	s.Helper()
	d, err := s.declare("shop", groups, manifests)
	s.must(err)
	d.by = &program{id: dispatch.NewRunID(), grace: grace, expires: time.Hour}
	again = func() Changes {
		s.Helper()
		changes, err := s.store(s.ctx(), d)
		s.must(err)
		return changes
	}
	again()
	d.by.runs = true
	return d, again
}

func (s *shelf) leave(d declaration) {
	s.Helper()
	s.exec(s.sql.Get("leave_program"), d.by.id)
}

// While two releases run, the newer decides, however often the older starts, and each keeps the manifests that it
// alone declares. The older decides after the last program of the newer has ended; a manifest that the older does not
// declare becomes an orphan after the grace.
func TestNewerReleaseDecidesWhileItRuns(t *testing.T) {
	s := newShelf(t)
	both := every("both")
	both.Group = "g"
	_, older := s.runs(0, []Group{{Name: "g", Max: 1}, {Name: "old", Max: 1}}, both, every("old"))
	both.Priority = 9
	newer, _ := s.runs(0, []Group{{Name: "g", Max: 2}, {Name: "new"}}, both, every("new"))
	const all = "SELECT (SELECT string_agg(format('%s %s %s %s', name, priority, version, live), ', ' ORDER BY name) " +
		"FROM :schema.manifest) || '; ' || (SELECT string_agg(format('%s %s %s', name, owner, most), ', ' " +
		"ORDER BY name) FROM :schema.manifest_group)"
	s.says("the newer decides", "both 9 2 t, new 0 1 t, old 0 1 t; g shop 2, new shop , old shop 1", all)
	for range 2 { // the older continues to run, and starts again
		if changes := older(); !changes.None() {
			t.Errorf("the older release has changed %+v", changes)
		}
		_, older = s.runs(0, []Group{{Name: "g", Max: 1}, {Name: "old", Max: 1}}, every("old"),
			func(m Manifest) Manifest { m.Priority = 0; return m }(both))
	}
	s.says("numbers", "1 2", "SELECT string_agg(number::text, ' ' ORDER BY number) FROM :schema.manifest_release")
	s.must(s.SetGroup(s.ctx(), Group{Name: "new", Max: 7}))
	s.must(s.Pause(s.ctx(), "new", "the bank is down"))
	s.leave(newer)
	older()
	s.says("the older decides", "both 0 3 t, new 0 1 f, old 0 1 t; g shop 1, new  7, old shop 1", all)
	_, _ = s.runs(0, []Group{{Name: "g", Max: 2}, {Name: "new"}}, both, every("new"))
	s.says("what an operator has set is there again", "both 9 4 t, new 0 2 f, old 0 1 t; g shop 2, new shop 7, "+
		"old shop 1", all)
	s.says("paused", "the bank is down", "SELECT reason FROM :schema.manifest WHERE name = 'new' "+
		"AND orphaned_at IS NULL")
}

// A program that has ended, or is silent, keeps its manifests for the grace.
func TestReleaseKeepsItsManifestsForTheGrace(t *testing.T) {
	s := newShelf(t)
	one, _ := s.runs(time.Hour, nil, every("a"))
	two, _ := s.runs(time.Hour, nil, every("b"))
	_, again := s.runs(time.Hour, nil, every("c"))
	s.leave(one)
	s.exec("UPDATE :schema.manifest_program SET expires = now() - interval '1 minute' WHERE id = $1", two.by.id)
	if changes := again(); !changes.None() {
		t.Errorf("within the grace: %+v", changes)
	}
	s.exec("UPDATE :schema.manifest_release SET seen = now() - interval '2 hours' WHERE number < 3")
	if changes := again(); len(changes.Orphaned) != 1 || changes.Orphaned[0] != "a" {
		t.Errorf("after the grace of a: %+v", changes)
	}
	s.exec("UPDATE :schema.manifest_program SET expires = now() - interval '2 hours' WHERE id = $1", two.by.id)
	if changes := again(); len(changes.Orphaned) != 1 || changes.Orphaned[0] != "b" {
		t.Errorf("after the grace of b: %+v", changes)
	}
}

// A manifest that an operator removed stays removed for running programs, and is restored by later ones.
func TestRemovedManifestComesBackWithTheNextStart(t *testing.T) {
	s := newShelf(t)
	_, again := s.runs(0, nil, every("a"), every("b"))
	s.must(s.Remove(s.ctx(), "a"))
	if changes := again(); !changes.None() {
		t.Errorf("a program that runs: %+v", changes)
	}
	d, again := s.runs(0, nil, every("a"), every("b"), every("c"))
	s.says("back", "true", "SELECT live FROM :schema.manifest WHERE name = 'a'")
	s.must(s.Remove(s.ctx(), "a"))
	s.must(s.Put(s.ctx(), every("a")))
	s.exec("UPDATE :schema.manifest SET live = false, orphaned_at = now() WHERE name = 'b'")
	again()
	refuses(t, d.by.faults, "made at run time")
	s.says("a fault of one keeps no other from coming back", "true",
		"SELECT live FROM :schema.manifest WHERE name = 'b'")
}

// A changed interval counts from the last firing: rollbacks and new rollouts do not fire at once.
func TestAnotherIntervalCountsFromTheLastFiring(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	s.sync("shop", m)
	for every, want := range map[time.Duration]string{2 * time.Hour: "13:00:00", time.Hour: "12:00:00"} {
		s.sync("shop", Manifest{Name: "a", When: Every(time.Hour), Message: m.Message})
		s.exec("UPDATE :schema.manifest SET due = '2200-01-01 12:00:00+00'") // it has fired an hour before
		s.sync("shop", Manifest{Name: "a", When: Every(every), Message: m.Message})
		s.says("due", want, "SELECT to_char(due AT TIME ZONE 'UTC', 'HH24:MI:SS') FROM :schema.manifest")
	}
	s.sync("shop", Manifest{Name: "a", When: Every(time.Hour), Message: m.Message})
	s.exec("UPDATE :schema.manifest SET due = now() - interval '3 hours'")
	s.sync("shop", Manifest{Name: "a", When: Every(90 * time.Minute), Message: m.Message})
	s.says("one that is late is due now", "true", "SELECT due BETWEEN now() - interval '1 minute' AND now() "+
		"FROM :schema.manifest")
}
