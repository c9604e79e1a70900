package scheduler_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

const releaseVariable = "EDDA_TEST_RELEASE"

// release is a program of one release, in its own process.
type release struct {
	Server, Schema string
	Newer          bool
	Start          time.Time // of the scenario
}

// ping has the name of its manifest.
type ping struct{ Of string }

func (ping) Kind() string { return "ping" }

const (
	graceOfReleases = 500 * time.Millisecond
	leaseOfReleases = 3 * time.Second
)

// manifests returns the manifests of the release: both releases declare "both" with different contents, the older one
// alone declares "old", and the newer one alone declares the others.
func (r release) manifests() []scheduler.Manifest {
	second := func(name string, priority int) scheduler.Manifest {
		return scheduler.Manifest{Name: name, When: scheduler.Every(time.Second), Message: ping{name},
			Priority: priority}
	}
	if !r.Newer {
		return []scheduler.Manifest{second("both", 1), second("old", 0)}
	}
	return []scheduler.Manifest{second("both", 2), second("new", 0), second("paused", 0),
		{Name: "once", When: scheduler.Once(r.Start), Message: ping{"once"}},
		{Name: "day", When: scheduler.Every(24 * time.Hour), Message: ping{"day"}},
		{Name: "dies", When: scheduler.Every(time.Second), Message: ping{"dies"}, Retries: -1}}
}

// runRelease is the main function of such a program. It prints a line for each run that it handles.
func runRelease() error {
	r := release{}
	ctx, err := procs.Attend(context.Background(), releaseVariable, &r)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, r.Server)
	if err != nil {
		return err
	}
	defer pool.Close()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	b, err := bus.New(pool, bus.Options{Schema: r.Schema, Logger: log,
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	if err != nil {
		return err
	}
	pings, err := bus.NewEndpoint(b, "pings", bus.EndpointOptions{Concurrency: 2},
		bus.Handle(func(c *bus.Context, m ping) error {
			if m.Of == "dies" {
				return saga.Permanent(fmt.Errorf("it dies"))
			}
			_, err := fmt.Fprintln(os.Stdout, m.Of, c.Info().Firing.Run)
			return err
		}))
	if err != nil {
		return err
	}
	s, err := scheduler.New(b, scheduler.Options{Owner: "shop", Logger: log, PollOnly: pgdev.Pooled(),
		OrphanGrace: graceOfReleases,
		Lease:       leaseOfReleases, LeaseAcquire: 200 * time.Millisecond, Reconcile: 300 * time.Millisecond,
		Evaluate: 100 * time.Millisecond, Dispatch: 100 * time.Millisecond}, r.manifests()...)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(pings, s)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// rollout is a scenario of two releases.
type rollout struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	store  *scheduler.Store
	start  time.Time
	kill   bool // programs are killed instead of being asked to end

	mu    sync.Mutex
	fired map[string]map[string]bool // ids of handled runs, by manifest
}

// pod starts a program, and returns when it has declared its manifests.
func (w *rollout) pod(newer bool) *procs.Process {
	w.Helper()
	lines, into := io.Pipe()
	p, err := procs.Start(procs.Job{Name: "pod", Variable: releaseVariable, Stdout: into,
		Task: release{w.pool.Config().ConnString(), w.schema.Name(), newer, w.start}})
	if err != nil {
		w.Fatal(err)
	}
	go func() { <-p.Ended(); _ = into.Close() }()
	go func() {
		for s := bufio.NewScanner(lines); s.Scan(); {
			name, run, _ := strings.Cut(s.Text(), " ")
			w.mu.Lock()
			if w.fired[name] == nil {
				w.fired[name] = map[string]bool{}
			}
			w.fired[name][run] = true
			w.mu.Unlock()
		}
	}()
	w.Cleanup(p.Kill)
	mine := "old"
	if newer {
		mine = "new"
	}
	w.until(mine+" is declared", func() bool { return w.state(mine) == "live" })
	return p
}

// end ends programs, by a kill or in order.
func (w *rollout) end(all ...*procs.Process) {
	w.Helper()
	for _, p := range all {
		if w.kill {
			p.Kill()
		} else if err := p.Stop(pgdev.Patience(10 * time.Second)); err != nil {
			w.Error(err)
		}
	}
}

func (w *rollout) runs(manifest string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.fired[manifest])
}

func (w *rollout) state(manifest string) string {
	m, err := w.store.Manifest(w.Context(), manifest)
	if err != nil {
		return "gone"
	}
	return string(m.State)
}

func (w *rollout) until(what string, done func() bool) {
	w.Helper()
	for began := time.Now(); !done(); <-time.After(20 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(6*time.Second) {
			w.Fatalf("waited in vain until %s", what)
		}
	}
}

// keepFiring waits until each manifest has fired twice more, and reports each manifest that was not live in that time.
func (w *rollout) keepFiring(when string, manifests ...string) {
	w.Helper()
	before := map[string]int{}
	for _, name := range manifests {
		before[name] = w.runs(name)
	}
	w.until(fmt.Sprintf("%v fire while %s", manifests, when), func() bool {
		all := true
		for _, name := range manifests {
			if s := w.state(name); s != "live" {
				w.Fatalf("%s is %s while %s", name, s, when)
			}
			all = all && w.runs(name) >= before[name]+2
		}
		return all
	})
}

// Two releases of a program run side by side: while a release is rolled out, as a canary, while a program of the
// older release crashes again and again, after a rollback, and after the next rollout. A schedule fires while a
// program that declares it runs; no due time fires twice; and the settings of operators are restored.
func TestTwoReleasesSideBySide(t *testing.T) {
	for name, kill := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRollout(t, kill)
			old := []*procs.Process{w.pod(false), w.pod(false)}
			w.keepFiring("the older release runs", "both", "old")

			canary := w.pod(true)
			w.keepFiring("a canary runs", "both", "old", "new")
			w.end(canary)
			w.until("the manifest of the canary is an orphan", func() bool { return w.state("new") == "orphan" })
			w.keepFiring("the canary is gone", "both", "old")

			young := []*procs.Process{w.pod(true), w.pod(true)}
			if err := w.store.Pause(t.Context(), "paused", "the bank is down"); err != nil {
				t.Fatal(err)
			}
			w.end(old...)
			w.until("what the newer release leaves out is an orphan", func() bool { return w.state("old") == "orphan" })
			w.keepFiring("the newer release runs", "both", "new")
			w.until("a run is dead", func() bool { return w.state("dies") == "held" })

			version := w.info("both").Version
			for range 3 {
				crashing := w.pod(false)
				crashing.Kill()
			}
			w.keepFiring("an older program crashes again and again", "both", "new")
			if m := w.info("both"); m.Priority != 2 || m.Version != version {
				t.Errorf("the older release has changed what the newer declares: priority %d, version %d, want 2, %d",
					m.Priority, m.Version, version)
			}

			old = []*procs.Process{w.pod(false), w.pod(false)} // the rollback
			w.end(young...)
			for _, name := range []string{"new", "once", "day", "paused"} {
				w.until(name+" is no longer declared", func() bool {
					return slices.Contains([]string{"orphan", "gone"},
						w.state(name))
				})
			}
			w.keepFiring("the older release is back", "both", "old")
			if m := w.info("both"); m.Priority != 1 {
				t.Errorf("after the rollback the priority is %d, want that of the older release", m.Priority)
			}

			w.pod(true) // the next rollout
			w.end(old...)
			w.keepFiring("the newer release is back", "both", "new")
			for manifest, want := range map[string]int{"once": 1, "day": 1} {
				if n := w.runs(manifest); n != want {
					t.Errorf("%s has fired %d times, want %d", manifest, n, want)
				}
			}
			if m := w.info("paused"); m.State != scheduler.ManifestPaused || m.Paused.Reason != "the bank is down" {
				t.Errorf("what an operator has paused is %s %q", m.State, m.Paused.Reason)
			}
			if m := w.info("dies"); m.State != scheduler.ManifestHeld {
				t.Errorf("a manifest whose run is dead is %s", m.State)
			}
		})
	}
}

func (w *rollout) info(manifest string) scheduler.ManifestInfo {
	w.Helper()
	m, err := w.store.Manifest(w.Context(), manifest)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

func openRollout(t *testing.T, kill bool) *rollout {
	t.Helper()
	pool, schema := pgtest.Database(t)
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(pgtest.Pool(t), bus.Options{Schema: schema.Name()})
	if err == nil {
		err = b.InstallQueue(t.Context(), "pings", ping{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	return &rollout{T: t, pool: pool, schema: schema, store: store, start: time.Now(), kill: kill,
		fired: map[string]map[string]bool{}}
}
