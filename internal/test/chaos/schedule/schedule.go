package schedule

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
)

//go:embed schedule.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Scenario is the package's.
var Scenario = lab.Scenario{
	Name: "schedule", About: "a thousand manifests a second, servers that die, a clock that jumps",
	Full:  lab.Size{Workers: 3, For: time.Minute},
	Quick: lab.Size{Workers: 3, For: 15 * time.Second},
	Flags: func(f *flag.FlagSet) {
		f.IntVar(&flags.manifests, "manifests", 1000, "schedule: manifests, each due every second")
		f.DurationVar(&flags.others, "others", -1,
			"schedule: how long, with fewer guards; 0 leaves that out, less is a third of -for")
		f.BoolVar(&flags.clock, "clock", true, "schedule: move the database's clock")
		f.BoolVar(&flags.broken, "broken", false,
			"schedule: drop the unique indexes and both guards, and expect doubles")
	},
	Run: schedule, Work: serve,
}

var flags struct {
	manifests     int
	others        time.Duration
	clock, broken bool
}

// mode is one part of the scenario.
type mode struct {
	name            string
	lasting         time.Duration
	noLease, noLock bool
	noIndex         bool
}

func schedule(ctx context.Context, s lab.Settings) error {
	others := flags.others
	if others < 0 {
		others = s.For / 3
	}
	modes := []mode{{name: "all guards", lasting: s.For}}
	switch {
	case flags.broken:
		modes = []mode{{name: "no guard and no index", lasting: others, noLease: true, noLock: true, noIndex: true}}
	case others > 0:
		modes = append(modes,
			mode{name: "no lock", lasting: others, noLock: true},
			mode{name: "no lease", lasting: others, noLease: true},
			mode{name: "no lock, no lease", lasting: others, noLease: true, noLock: true})
	}
	var broken error
	for _, m := range modes {
		err := try(ctx, s, m)
		if err != nil && !errors.Is(err, lab.ErrBroken) {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		broken = errors.Join(broken, err)
	}
	return broken
}

// trial is one mode with a Postgres of its own.
type trial struct {
	*lab.Lab
	mode    mode
	clock   *clock
	servers *procs.Workers
}

func try(ctx context.Context, s lab.Settings, m mode) error {
	t, o := &trial{mode: m}, pgdev.Options{Durable: true}
	if flags.clock {
		c, err := newClock()
		if err != nil {
			return err
		}
		defer c.remove()
		t.clock, o.Env = c, c.env
	}
	l, err := lab.Open(ctx, s, o, sql)
	if err != nil {
		return err
	}
	defer l.Close()
	t.Lab = l
	for name, wanted := range map[string]bool{"drop_indexes": m.noIndex, "no_lock": m.noLock} {
		if !wanted {
			continue
		}
		if err := l.Exec(ctx, sql.Get(name)); err != nil {
			return err
		}
	}
	if err := l.Bus.InstallQueue(ctx, endpoint, tick{}.Kind()); err != nil {
		return err
	}
	t.servers = l.Workers(ctx, server{Manifests: flags.manifests, NoLease: m.noLease, NoLock: m.noLock})
	var horizon time.Time
	err = lab.During(ctx, t.servers, func(ctx context.Context) (err error) {
		if err := t.rage(ctx); err != nil {
			return err
		}
		horizon, err = t.catchUp(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return t.judge(ctx, horizon)
}

func (t *trial) rage(ctx context.Context) error {
	for end := time.Now().Add(t.mode.lasting); time.Now().Before(end); {
		if err := run.Sleep(ctx, t.Between(500*time.Millisecond, 2*time.Second)); err != nil {
			return err
		}
		if err := t.strike(ctx); err != nil {
			return err
		}
	}
	if t.clock != nil {
		return t.clock.settle(ctx)
	}
	return nil
}

// strike does one of four things, the clock's twice as often as the others.
func (t *trial) strike(ctx context.Context) error {
	p := t.servers.Any(t.Random)
	switch what := t.Random.IntN(5); {
	case p == nil:
		return nil // it is being replaced
	case what == 0:
		return t.Kill(ctx, p)
	case what == 1:
		return t.Freeze(ctx, p, term+t.Between(0, 2*time.Second), nil)
	case what == 2 || t.clock == nil:
		return t.terminate(ctx)
	}
	by := time.Duration(t.Random.IntN(20)-10) * time.Second
	if err := t.clock.jump(by); err != nil {
		return err
	}
	return t.Note(ctx, "clock jump", by.String())
}

// terminate ends the session that evaluates. An evaluation is short: it looks for one for a while.
func (t *trial) terminate(ctx context.Context) error {
	name := fnv.New64a()
	_, _ = name.Write([]byte("edda evaluate edda")) // a hash never fails
	key := int64(name.Sum64())
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		ended := 0
		if err := t.Row(ctx, sql.Get("lock_holder"), []any{key}, &ended); err != nil {
			return err
		}
		if ended > 0 {
			return t.Note(ctx, "lost lock", "of the session that evaluates")
		}
	}
	return nil
}

// catchUp waits until everything that was due until now has been handled, and returns that moment. What is missing
// after some minutes is found by the checks.
func (t *trial) catchUp(ctx context.Context) (horizon time.Time, err error) {
	if err := t.Row(ctx, `SELECT clock_timestamp()`, nil, &horizon); err != nil {
		return horizon, err
	}
	begun := time.Now()
	err = lab.Await(ctx, 3*time.Minute, "the end of what was due", func() (bool, error) {
		behind := 0
		err := t.Row(ctx, sql.Get("behind"), []any{horizon}, &behind)
		return behind == 0, err
	})
	t.Fact("caught_up", time.Since(begun))
	if errors.Is(err, lab.ErrBroken) {
		err = nil
	}
	return horizon, err
}

// judge counts up to the horizon, a moment of the database's clock that all manifests have passed.
func (t *trial) judge(ctx context.Context, horizon time.Time) error {
	expected := 0
	if err := t.Exec(ctx, sql.Get("told"), horizon); err != nil {
		return err
	}
	if err := t.Exec(ctx, sql.Get("forget_later"), horizon); err != nil {
		return err
	}
	if err := t.Row(ctx, `SELECT count(*) FROM chaos.told`, nil, &expected); err != nil {
		return err
	}
	t.Fact("expected", expected)
	t.Expect(expected > 0, "missing", "nothing was due")
	if err := t.CheckEffects(ctx, t.Pool); err != nil {
		return err
	}
	if err := t.Check(ctx, t.Pool, sql.Get("check_runs"), horizon); err != nil {
		return err
	}
	doubles := slices.ContainsFunc(t.Found(),
		func(v lab.Violation) bool { return v.Rule == "double" || v.Rule == "doubled" })
	err := t.Conclude(ctx, fmt.Sprintf("%s, %v", t.mode.name, t.mode.lasting), sql,
		"missing", "double", "lost", "doubled", "open", "strange")
	switch {
	case t.mode.noIndex && !doubles:
		return fmt.Errorf("no double was seen, though nothing kept servers apart: the test is blind: %w", lab.ErrBroken)
	case t.mode.noIndex && errors.Is(err, lab.ErrBroken):
		return nil // they were expected
	}
	return err
}
