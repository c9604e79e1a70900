package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
)

func TestSyncCreatesChangesAndOrphans(t *testing.T) {
	s := newShelf(t)
	a, b, c := every("a"), every("b"), every("c")
	b.Group = "g"
	changes, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g", Max: 2, Strict: true}}, []Manifest{c, a, b})
	s.must(err)
	want := Changes{Created: []string{"a", "b", "c"}, Groups: GroupChanges{Created: []string{"g"}}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	due := s.ask("SELECT due FROM :schema.manifest WHERE name = 'a'")
	s.says("due at once", "true", "SELECT bool_and(due <= clock_timestamp() AND live AND version = 1) FROM "+
		":schema.manifest")

	b.Priority, b.Message = 3, settle{Day: "monday"}
	changes, err = s.Sync(s.ctx(), "shop", nil, []Manifest{a, b})
	s.must(err)
	want = Changes{
		Changed: []Change{{"b", []string{"Message", "Priority"}}}, Orphaned: []string{"c"}, Unchanged: []string{"a"},
		Groups: GroupChanges{Orphaned: []string{"g"}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.says("versions and life", "a 1 t, b 2 t, c 1 f",
		"SELECT string_agg(format('%s %s %s', name, version, live), ', ' ORDER BY name) FROM :schema.manifest")
	s.says("due of what did not change", due, "SELECT due FROM :schema.manifest WHERE name = 'a'")
	s.says("message", `{"day":"monday"}`, "SELECT convert_from(body, 'UTF8') FROM :schema.manifest WHERE name = 'b'")
}

func TestOrphanComesBackWithWhatItIsDue(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"), every("b"))
	due := s.ask("SELECT due FROM :schema.manifest WHERE name = 'b'")
	s.sync("shop", every("a"))
	s.says("orphan", "f t", "SELECT format('%s %s', live, orphaned_at IS NOT NULL) FROM :schema.manifest WHERE "+
		"name = 'b'")
	if again := s.sync("shop", every("a")); !again.None() {
		t.Errorf("an orphan is an orphan once: %+v", again)
	}
	changes := s.sync("shop", every("a"), every("b"))
	if diff := cmp.Diff([]Change{{"b", []string{"orphan"}}}, changes.Changed); diff != "" {
		t.Error(diff)
	}
	s.says("back", "true "+due, "SELECT live || ' ' || due FROM :schema.manifest WHERE name = 'b' AND "+
		"orphaned_at IS NULL")
}

func TestEmptyDeclarationPrunesNothing(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"))
	if changes := s.sync("shop"); !changes.None() {
		t.Errorf("an empty declaration: %+v", changes)
	}
	changes, err := s.Sync(s.ctx(), "shop", []Group{{Name: "g"}}, nil)
	s.must(err)
	if len(changes.Orphaned) > 0 {
		t.Errorf("a declaration without manifests: %+v", changes)
	}
	s.says("live", "true", "SELECT live FROM :schema.manifest")
}

func TestOwnersLeaveEachOtherAlone(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"), every("b"))
	s.sync("bank", every("c"))
	_, err := s.Sync(s.ctx(), "bank", nil, []Manifest{every("c"), every("a")})
	if !errors.Is(err, ErrOwned) {
		t.Errorf("%v, want ErrOwned", err)
	}
	refuses(t, err, `"shop"`, `"bank"`, `"a"`)
	s.says("all live", "true 3", "SELECT bool_and(live) || ' ' || count(*) FROM :schema.manifest")
	// A manifest that its owner no longer declares may be declared by others.
	s.sync("shop", every("b"))
	s.sync("bank", every("c"), every("a"))
	s.says("owners", "a bank, b shop, c bank", "SELECT string_agg(name || ' ' || owner, ', ' ORDER BY name) FROM "+
		":schema.manifest WHERE live")
	_, err = s.Sync(s.ctx(), "shop", []Group{{Name: "g"}}, []Manifest{every("b")})
	s.must(err)
	_, err = s.Sync(s.ctx(), "bank", []Group{{Name: "g"}}, []Manifest{every("c")})
	refuses(t, err, "group", `"shop"`, `"bank"`)
}

func TestOperatorsPauseAndCapSurviveADeploy(t *testing.T) {
	s := newShelf(t)
	m := every("a")
	m.Group = "g"
	groups := []Group{{Name: "g", Max: 5}}
	_, err := s.Sync(s.ctx(), "shop", groups, []Manifest{m})
	s.must(err)
	s.must(s.Pause(s.ctx(), "a", "the bank is down"))
	s.must(s.SetGroup(s.ctx(), Group{Name: "g", Max: 1}))
	for _, message := range []string{"", "monday"} { // the first deploy changes nothing, the second changes the message
		m.Message = settle{Day: message}
		_, err = s.Sync(s.ctx(), "shop", groups, []Manifest{m})
		s.must(err)
		s.says("paused", "false the bank is down", "SELECT live || ' ' || reason FROM :schema.manifest WHERE "+
			"paused_at IS NOT NULL")
		s.says("cap", "1", "SELECT most FROM :schema.manifest_group")
	}
	groups[0].Max = 7
	_, err = s.Sync(s.ctx(), "shop", groups, []Manifest{m})
	s.must(err)
	s.says("cap that was declared anew", "7", "SELECT most FROM :schema.manifest_group")
}

// A deploy starts the newer program first; then a program of the older release restarts. The older declaration holds
// until a newer program starts again, and nothing is lost.
func TestOlderProgramBesideANewerOne(t *testing.T) {
	s := newShelf(t)
	older, newer := []Manifest{every("a")}, []Manifest{every("a"), every("b")}
	newer[0].Priority = 9
	s.sync("shop", older...)
	s.sync("shop", newer...)
	due := s.ask("SELECT due FROM :schema.manifest WHERE name = 'b'")
	s.sync("shop", older...)
	s.says("the older one has its way", "a 0 t, b 0 f",
		"SELECT string_agg(format('%s %s %s', name, priority, live), ', ' ORDER BY name) FROM :schema.manifest")
	s.sync("shop", newer...)
	s.says("the newer one again", "a 9 t, b 0 t",
		"SELECT string_agg(format('%s %s %s', name, priority, live), ', ' ORDER BY name) FROM :schema.manifest")
	s.says("due", due, "SELECT due FROM :schema.manifest WHERE name = 'b'")
}

func TestChangedScheduleBeginsAnew(t *testing.T) {
	s := newShelf(t)
	m := Manifest{Name: "a", When: Once(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), Message: settle{}}
	s.sync("shop", m)
	s.exec("UPDATE :schema.manifest SET due = NULL") // it has fired
	m.Priority = 1
	s.sync("shop", m)
	s.says("fired once", "", "SELECT due FROM :schema.manifest")
	m.When = Once(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC))
	if changes := s.sync("shop", m); len(changes.Changed) != 1 || changes.Changed[0].What[0] != "When" {
		t.Errorf("%+v", changes)
	}
	s.says("due", "true", "SELECT due = '2031-01-01 00:00:00+00' FROM :schema.manifest")
	m.When = OnDemand()
	s.sync("shop", m)
	s.says("on demand", "", "SELECT due FROM :schema.manifest")
}

func TestFollowers(t *testing.T) {
	s := newShelf(t)
	after := func(name, parent string) Manifest {
		return Manifest{Name: name, When: After(parent), Message: settle{}}
	}
	s.sync("shop", every("a"))
	s.exec("UPDATE :schema.manifest SET successes = 7 WHERE name = 'a'")
	s.sync("bank", after("b", "a"), after("c", "b"))
	s.says("a new follower has nothing to catch up", "b 7 , c 0 ",
		"SELECT string_agg(format('%s %s %s', name, answered, due), ', ' ORDER BY name) FROM :schema.manifest "+
			"WHERE follows")
	_, err := s.Sync(s.ctx(), "shop", nil, []Manifest{every("x"), after("y", "nobody")})
	refuses(t, err, `manifest "y"`, `"nobody"`, "neither declared nor stored")
	_, err = s.Sync(s.ctx(), "shop", nil, []Manifest{after("a", "c")})
	refuses(t, err, "in a circle", "a after c after b after a")
	_, err = s.Sync(s.ctx(), "shop", nil, []Manifest{every("a"), after("p", "q"), after("q", "r"), after("r", "p"),
		after("s", "r")})
	refuses(t, err, "p after q after r after p")
	_, err = s.Sync(s.ctx(), "bank", nil, []Manifest{after("c", "b")})
	refuses(t, err, `its parent "b" is neither declared nor stored`)
	// A parent that was deleted and is created again counts from zero, and so do its followers.
	s.exec("DELETE FROM :schema.manifest WHERE name = 'a'")
	s.sync("shop", every("a"))
	s.says("counts anew", "0", "SELECT answered FROM :schema.manifest WHERE name = 'b'")
}

type unnamed struct{}

func (unnamed) Kind() string { return "Not A Kind" }

type broken struct{ C chan int }

func (broken) Kind() string { return "broken" }

func TestBadDeclarations(t *testing.T) {
	s := newShelf(t)
	with := func(change func(m *Manifest)) []Manifest {
		m := every("bad")
		change(&m)
		return []Manifest{m}
	}
	for says, manifests := range map[string][]Manifest{
		"name of 0 bytes":                with(func(m *Manifest) { m.Name = "" }),
		"name of 128 bytes":              with(func(m *Manifest) { m.Name = strings.Repeat("x", 128) }),
		`manifest "Bad": Name`:           with(func(m *Manifest) { m.Name = "Bad" }),
		`manifest "9": Name`:             with(func(m *Manifest) { m.Name = "9" }),
		`manifest "a\x00": Name`:         with(func(m *Manifest) { m.Name = "a\x00" }),
		"When: it is not set":            with(func(m *Manifest) { m.When = nil }),
		"it names the manifest itself":   with(func(m *Manifest) { m.When = After("bad") }),
		"name of the manifest before it": with(func(m *Manifest) { m.When = Dormant("No") }),
		"Message: it is not set":         with(func(m *Manifest) { m.Message = nil }),
		"Message: kind":                  with(func(m *Manifest) { m.Message = unnamed{} }),
		"encode broken":                  with(func(m *Manifest) { m.Message = broken{} }),
		"the limit is 1048576": with(
			func(m *Manifest) { m.Message = saga.Raw{Name: "k", Body: make([]byte, 1<<20+1)} }),
		"Group: name of 1 bytes":     with(func(m *Manifest) { m.Group = "G" }),
		`Group: "g" is neither`:      with(func(m *Manifest) { m.Group = "g" }),
		"Priority: 32: want 0 to 31": with(func(m *Manifest) { m.Priority = 32 }),
		"Priority: -1":               with(func(m *Manifest) { m.Priority = -1 }),
		"Retries: -2":                with(func(m *Manifest) { m.Retries = -2 }),
		"Retries: 101":               with(func(m *Manifest) { m.Retries = 101 }),
		"RetryDelay: -1s":            with(func(m *Manifest) { m.RetryDelay = -time.Second }),
		"MaxRetryDelay: -1s":         with(func(m *Manifest) { m.MaxRetryDelay = -time.Second }),
		"never fires":                with(func(m *Manifest) { m.When = Cron("0 0 30 2 *", "UTC") }),
		"Timeout: 1ms":               with(func(m *Manifest) { m.Timeout = time.Millisecond }),
		"Timeout: -1s":               with(func(m *Manifest) { m.Timeout = -time.Second }),
		"declared twice":             append(with(func(*Manifest) {}), every("bad")),
	} {
		_, err := s.Sync(s.ctx(), "shop", nil, manifests)
		refuses(t, err, says, `"shop"`, `manifest `)
		_, err = s.Diff(s.ctx(), "shop", nil, manifests)
		refuses(t, err, says)
	}
	for says, g := range map[string]Group{
		`group "G": name`: {Name: "G"}, "Max is -1": {Name: "g", Max: -1},
		"Max is 1000001": {Name: "g", Max: 1_000_001},
		"Strict needs":   {Name: "g", Strict: true}, "Priority is 40": {Name: "g", Priority: 40},
	} {
		_, err := s.Sync(s.ctx(), "shop", []Group{g}, nil)
		refuses(t, err, says, "group")
	}
	_, err := s.Sync(s.ctx(), "", nil, []Manifest{every("a")})
	refuses(t, err, "owner")
	_, err = s.Sync(s.ctx(), "shop", []Group{{Name: "g"}, {Name: "g"}}, nil)
	refuses(t, err, "declared twice")
	var many []Manifest
	for n := range 100 {
		many = append(many, Manifest{Name: fmt.Sprintf("m%d", n)})
	}
	_, err = s.Sync(s.ctx(), "shop", nil, many)
	refuses(t, err, "and 80 more")
	s.says("nothing was written", "0", "SELECT count(*) FROM :schema.manifest")
}

func TestDefaultsAreStored(t *testing.T) {
	s := newShelf(t)
	m := every("b")
	m.Timeout, m.Retries, m.RetryDelay = NoTimeout, -1, 2*time.Hour
	s.sync("shop", every("a"), m)
	s.says("stored", "a 3 00:05:00 01:00:00 00:20:00, b 0 02:00:00 02:00:00 none",
		"SELECT string_agg(format('%s %s %s %s %s', name, retries, retry_delay, retry_most, "+
			"coalesce(timeout::text, 'none')), ', ' ORDER BY name) FROM :schema.manifest")
	if changes := s.sync("shop", every("a"), m); !changes.None() {
		t.Errorf("the same again: %+v", changes)
	}
}

func many(n int, prefix string) (all []Manifest) {
	for i := range n {
		all = append(all, Manifest{Name: fmt.Sprintf("%s/%05d", prefix, i), When: Every(time.Hour),
			Message: settle{Day: fmt.Sprint(i)}})
	}
	return all
}

func TestSyncOfAThousand(t *testing.T) {
	s := newShelf(t)
	all := many(1000, "m")
	for _, step := range []struct {
		what string
		want func(Changes) int
		prep func()
	}{
		{"created", func(c Changes) int { return len(c.Created) }, func() {}},
		{"unchanged", func(c Changes) int { return len(c.Unchanged) }, func() {}},
		{"changed", func(c Changes) int { return len(c.Changed) }, func() {
			for n := range all {
				all[n].Priority = 1
			}
		}},
	} {
		step.prep()
		began := time.Now()
		if got := step.want(s.sync("shop", all...)); got != 1000 {
			t.Errorf("%d are %s", got, step.what)
		}
		t.Logf("1,000 %s in %v", step.what, time.Since(began))
	}
}

func TestConcurrentDeclarations(t *testing.T) {
	s := newShelf(t)
	var (
		group   sync.WaitGroup
		mu      sync.Mutex // guards created
		created int
	)
	for n := range 8 {
		owner := []string{"shop", "bank"}[n%2]
		group.Go(func() {
			changes, err := s.Sync(s.ctx(), owner, []Group{{Name: owner, Max: 1}}, many(50, owner))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			created += len(changes.Created)
		})
	}
	group.Wait()
	if created != 100 {
		t.Errorf("%d manifests were created by all together, want 100", created)
	}
	other, err := s.pool.Begin(s.ctx()) // a second program, in the middle of a declaration
	s.must(err)
	defer other.Rollback(context.WithoutCancel(s.ctx()))
	_, err = other.Exec(s.ctx(), s.sql.Get("lock_changes"))
	s.must(err)
	for patience := 100 * time.Millisecond; ; patience *= 2 { // until the time suffices for one attempt
		ctx, cancel := context.WithTimeout(s.ctx(), patience)
		_, err = s.Sync(ctx, "third", nil, many(1, "third"))
		cancel()
		if err == nil || errors.Is(err, errLocked) || patience > time.Minute {
			break
		}
	}
	if !errors.Is(err, errLocked) {
		t.Errorf("%v, want errLocked", err)
	}
	s.says("rows", "100 1", "SELECT count(*) || ' ' || max(version) FROM :schema.manifest WHERE live")
}

func TestDiffWritesNothing(t *testing.T) {
	s := newShelf(t)
	s.sync("shop", every("a"), every("b"))
	before := s.ask("SELECT string_agg(m::text, ',' ORDER BY id) FROM :schema.manifest m")
	changed := every("b")
	changed.Priority = 2
	changes, err := s.Diff(s.ctx(), "shop", nil, []Manifest{changed, every("c")})
	s.must(err)
	want := Changes{Created: []string{"c"}, Changed: []Change{{"b", []string{"Priority"}}}, Orphaned: []string{"a"}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.says("as before", before, "SELECT string_agg(m::text, ',' ORDER BY id) FROM :schema.manifest m")
}
