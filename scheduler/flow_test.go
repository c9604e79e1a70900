package scheduler_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type settle struct {
	Account string `json:"account"`
}

func (settle) Kind() string { return "settle" }

// flow is a bus with an endpoint, and schedulers that send to it.
type flow struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	bus    *bus.Bus
	store  *scheduler.Store
}

func openFlow(t *testing.T, wakeup bus.Wakeup) *flow {
	t.Helper()
	t.Parallel()
	f := &flow{t: t, pool: pgtest.PoolUnderTest(t)}
	f.schema = pgtest.Migrated(t, pgtest.Pool(t))
	f.exec("CREATE TABLE :schema.effect (manifest text, run uuid, attempt int, due timestamptz, body text, known int)")
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if f.bus, err = bus.New(f.pool, bus.Options{Schema: f.schema.Name(), AutoInstall: true, Logger: quiet,
		Wakeup: pgtest.IfPooled(bus.PollOnly, wakeup)}); err != nil {
		t.Fatal(err)
	}
	if f.store, err = scheduler.NewStore(f.pool, scheduler.StoreOptions{Schema: f.schema.Name()}); err != nil {
		t.Fatal(err)
	}
	e, err := bus.NewEndpoint(f.bus, "ledger", bus.EndpointOptions{Poll: 50 * time.Millisecond}, bus.HandleTx(f.handle))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.run(e.Run)
	return f
}

// handle writes its effect without a unique constraint, and whether other transactions can see the record of its run.
func (f *flow) handle(c *bus.Context, tx pgx.Tx, m settle) error {
	fire, known := c.Info().Firing, 0
	if err := f.pool.QueryRow(c, f.schema.Render(
		`SELECT count(*) FROM :schema.run r JOIN :schema.run_attempt a ON a.run = r.id AND a.attempt = r.attempt
			AND a.message_id = r.message_id
		WHERE r.id = $1 AND r.state = 'active' AND r.attempt = $2 AND r.message_id = $3`), fire.Run, fire.Attempt,
		c.Info().ID).Scan(&known); err != nil {
		return err
	}
	_, err := tx.Exec(c, f.schema.Render("INSERT INTO :schema.effect VALUES ($1, $2, $3, $4, $5, $6)"), fire.Manifest,
		fire.Run, fire.Attempt, fire.Due, m.Account, known)
	return err
}

func (f *flow) run(do func(context.Context) error) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("Run: %v", err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

func (f *flow) exec(sql string, args ...any) {
	f.t.Helper()
	pgtest.Exec(f.t, f.pool, f.schema.Render(sql), args...)
}

func (f *flow) count(sql string, args ...any) (n int) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), f.schema.Render(sql), args...).Scan(&n); err != nil {
		f.t.Fatalf("%v\n%s", err, sql)
	}
	return n
}

// await polls until the count is as wanted.
func (f *flow) await(what string, want int, sql string, args ...any) {
	f.t.Helper()
	deadline, got := time.Now().Add(pgdev.Patience(30*time.Second)), 0
	for got = f.count(sql, args...); got != want; got = f.count(sql, args...) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: %d, want %d\n%s", what, got, want, f.story())
		}
	}
}

// story returns the state of the tables, for a test that failed.
func (f *flow) story() (text string) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), f.schema.Render(
		`SELECT coalesce(string_agg(concat_ws(' ', m.name, 'due', m.due, r.origin, r.state, r.attempt, r.error),
			E'\n'), 'nothing')
		FROM :schema.manifest m LEFT JOIN :schema.run r ON r.manifest_id = m.id`)).Scan(&text); err != nil {
		f.t.Fatal(err)
	}
	return text
}

func (f *flow) scheduler(o scheduler.Options, m ...scheduler.Manifest) *scheduler.Scheduler {
	f.t.Helper()
	o.Owner, o.Logger, o.PollOnly = "test", slog.New(slog.DiscardHandler), o.PollOnly || pgdev.Pooled()
	s, err := scheduler.New(f.bus, o, m...)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// A declared manifest fires through the bus, the handler's effect and the end of the run commit together, and the
// follower fires after it. Without notifications all of this still works, but later.
//
// Row X11.
func TestNotificationsOnlyMakeItFaster(t *testing.T) {
	for name, c := range map[string]struct {
		wakeup bus.Wakeup
		mute   bool
	}{"notified": {bus.Notify, false}, "all dropped": {bus.PollOnly, true}} {
		t.Run(name, func(t *testing.T) {
			f := openFlow(t, c.wakeup)
			if c.mute { // listeners hear nothing, and callers are not heard
				f.exec("CREATE OR REPLACE FUNCTION :schema.channel() RETURNS text LANGUAGE sql IMMUTABLE AS $$ " +
					"SELECT 'nobody' $$")
			}
			manifests := []scheduler.Manifest{
				{Name: "nightly", When: scheduler.Every(time.Hour), Message: settle{Account: "7"}},
				{Name: "report", When: scheduler.After("nightly"), Message: settle{Account: "8"}},
				{Name: "by-hand", When: scheduler.OnDemand(), Message: settle{Account: "9"}},
			}
			for range 2 {
				f.run(f.scheduler(scheduler.Options{PollOnly: c.mute}, manifests...).Run)
			}
			f.await("the parent and its follower", 2, "SELECT count(*) FROM :schema.run WHERE state = 'succeeded'")
			if _, err := f.store.Trigger(t.Context(), "by-hand", nil, scheduler.TriggerOptions{}); err != nil {
				t.Fatal(err)
			}
			f.await("all that ran", 3, "SELECT count(*) FROM :schema.run WHERE state = 'succeeded'")
			f.await("effects", 3, "SELECT count(*) FROM :schema.effect e JOIN :schema.run r ON r.id = e.run AND "+
				"r.attempt = e.attempt JOIN :schema.manifest m ON m.id = r.manifest_id AND m.name = e.manifest "+
				"WHERE e.attempt = 1")
			if n := f.count("SELECT count(*) FROM :schema.run"); n != 3 {
				t.Errorf("%d runs, want 3", n)
			}
		})
	}
}

// When a handler begins, other transactions can read the record of its run and of the attempt, with the message's id.
func TestHandlerFindsItsRun(t *testing.T) {
	f := openFlow(t, bus.Notify)
	f.run(f.scheduler(scheduler.Options{}, scheduler.Manifest{Name: "nightly", When: scheduler.Every(time.Hour),
		Message: settle{Account: "7"}}).Run)
	f.await("the scheduled run", 1, "SELECT count(*) FROM :schema.effect")
	if _, err := f.store.Trigger(t.Context(), "nightly", nil, scheduler.TriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("and the triggered one", 2, "SELECT count(*) FROM :schema.effect")
	if n := f.count("SELECT count(*) FROM :schema.effect WHERE known = 1"); n != 2 {
		t.Errorf("%d of 2 handlers found the record of their run", n)
	}
}

// Five triggers while a scheduled run is queued create five more runs. A delayed run does not stop the schedule.
//
// Row X13.
func TestTriggersStandBesideTheSchedule(t *testing.T) {
	f := openFlow(t, bus.Notify)
	m := scheduler.Manifest{Name: "nightly", When: scheduler.Every(time.Hour), Message: settle{Account: "7"},
		Group: "g"}
	o := scheduler.Options{Groups: []scheduler.Group{{Name: "g"}}}
	stop := f.run(f.scheduler(o, m).Run)
	f.await("the first firing", 1, "SELECT count(*) FROM :schema.run WHERE state = 'succeeded'")
	if err := f.store.PauseGroup(t.Context(), "g", "look"); err != nil { // queued runs stay queued
		t.Fatal(err)
	}
	stop()
	trigger := func(o scheduler.TriggerOptions) {
		if _, err := f.store.Trigger(t.Context(), "nightly", nil, o); err != nil {
			t.Fatal(err)
		}
	}
	trigger(scheduler.TriggerOptions{Delay: time.Hour})
	// the group is not dispatched, and the manifest evaluated
	f.exec("UPDATE :schema.manifest SET due = now(), live = true")
	f.run(f.scheduler(o, m).Run)
	f.await("the scheduled entry beside a delayed trigger", 1, "SELECT count(*) FROM :schema.run WHERE state = "+
		"'queued' AND origin = 'schedule'")
	for range 5 {
		trigger(scheduler.TriggerOptions{})
	}
	if n := f.count("SELECT count(*) FROM :schema.run WHERE state = 'queued'"); n != 6 {
		t.Errorf("%d are queued, want the scheduled one and five", n)
	}
	if err := f.store.ResumeGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	f.await("all but the delayed one", 7, "SELECT count(*) FROM :schema.run WHERE state = 'succeeded'")
	f.await("effects", 7, "SELECT count(DISTINCT run) FROM :schema.effect")
	if n := f.count("SELECT count(*) FROM :schema.effect"); n != 7 {
		t.Errorf("%d effects, want 7", n)
	}
	if n := f.count("SELECT count(*) FROM :schema.run WHERE state = 'waiting' AND origin = 'manual'"); n != 1 {
		t.Errorf("%d runs wait, want the delayed one", n)
	}
}

// Two of one name are one too many, and a fault in a declaration is an error of New.
func TestNewRefusesWhatIsWrong(t *testing.T) {
	f := openFlow(t, bus.PollOnly)
	m := scheduler.Manifest{Name: "m", When: scheduler.Every(time.Hour), Message: settle{}}
	for name, c := range map[string]func() (*scheduler.Scheduler, error){
		"no sender": func() (*scheduler.Scheduler, error) { return scheduler.New(nil, scheduler.Options{}) },
		"twice": func() (*scheduler.Scheduler, error) {
			return scheduler.New(f.bus, scheduler.Options{Owner: "o"}, m, m)
		},
		"a lease": func() (*scheduler.Scheduler, error) {
			return scheduler.New(f.bus, scheduler.Options{LeaseRenew: time.Hour})
		},
		"no owner": func() (*scheduler.Scheduler,
			error) {
			return scheduler.New(f.bus, scheduler.Options{}, m)
		},
		"never fires": func() (*scheduler.Scheduler, error) {
			return scheduler.New(f.bus, scheduler.Options{Owner: "o"},
				scheduler.Manifest{Name: "m", When: scheduler.Cron("0 0 30 2 *", "UTC"), Message: settle{}})
		},
	} {
		if s, err := c(); err == nil || s != nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(name+":", err)
		}
	}
}

// Run fails with the error that names the remedy, and Check returns the same error before.
func TestRunTellsOfASchemaThatIsNotMigrated(t *testing.T) {
	f := openFlow(t, bus.PollOnly)
	b, err := bus.New(f.pool, bus.Options{Schema: "nothing_here"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scheduler.New(b, scheduler.Options{PollOnly: pgdev.Pooled(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check says nothing")
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run says nothing")
	} else {
		t.Log(err)
	}
	fine := f.scheduler(scheduler.Options{})
	pool, more := fine.Connections()
	want := pgtest.IfPooled(0, 2)
	if err := fine.Check(t.Context()); err != nil || pool != f.pool || more != want || fine.Name() != "scheduler" {
		t.Errorf("%v, %d, %s", err, more, fine.Name())
	}
}
