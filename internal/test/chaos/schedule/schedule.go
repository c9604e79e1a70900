package schedule

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
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
	SQL: sql, Rules: []string{"missing", "double", "lost", "doubled", "open", "strange"},
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
	horizon time.Time // a moment of the database's clock that all manifests have passed in the end
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
	return s.Try(ctx, lab.Trial{Title: fmt.Sprintf("%s, %v", m.name, m.lasting), Server: o, Prepare: t.prepare,
		Task:  lab.All(server{Manifests: flags.manifests, NoLease: m.noLease, NoLock: m.noLock}),
		Break: t.rage, Judge: t.judge})
}

func (t *trial) prepare(ctx context.Context, l *lab.Lab) error {
	t.Lab = l
	for name, wanted := range map[string]bool{"drop_indexes": t.mode.noIndex, "no_lock": t.mode.noLock} {
		if !wanted {
			continue
		}
		if err := l.Exec(ctx, sql.Get(name)); err != nil {
			return err
		}
	}
	return l.Bus.InstallQueue(ctx, endpoint, tick{}.Kind())
}

// rage strikes, the clock twice as often as anything else, and waits for what is due then.
func (t *trial) rage(ctx context.Context, _ *lab.Lab) error {
	blows := []lab.Blow{{Share: 1, Strike: t.Crew.KillAny}, {Share: 1, Strike: t.freeze},
		{Share: 1, Strike: t.terminate}}
	if t.clock != nil {
		blows = append(blows, lab.Blow{Share: 2, Strike: t.jump})
	}
	if err := t.Crew.Rage(ctx, t.mode.lasting, 500*time.Millisecond, 2*time.Second, blows...); err != nil {
		return err
	}
	if t.clock != nil {
		if err := t.clock.settle(ctx); err != nil {
			return err
		}
	}
	return t.catchUp(ctx)
}

func (t *trial) freeze(ctx context.Context) error {
	return t.Crew.FreezeAny(ctx, term, term+2*time.Second, nil)
}

func (t *trial) jump(ctx context.Context) error {
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

// catchUp waits until everything that was due until now has been handled. What is missing after some minutes is found
// by the checks.
func (t *trial) catchUp(ctx context.Context) error {
	if err := t.Row(ctx, `SELECT clock_timestamp()`, nil, &t.horizon); err != nil {
		return err
	}
	begun := time.Now()
	err := lab.Await(ctx, 3*time.Minute, "the end of all due runs", func() (bool, error) {
		behind := 0
		err := t.Row(ctx, sql.Get("behind"), []any{t.horizon}, &behind)
		return behind == 0, err
	})
	t.Fact("caught_up", time.Since(begun))
	if errors.Is(err, lab.ErrBroken) {
		err = nil
	}
	return err
}

// judge counts up to the horizon.
func (t *trial) judge(ctx context.Context, _ *lab.Lab) error {
	expected := 0
	if err := t.Exec(ctx, sql.Get("told"), t.horizon); err != nil {
		return err
	}
	if err := t.Exec(ctx, sql.Get("forget_later"), t.horizon); err != nil {
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
	if err := t.Check(ctx, t.Pool, "check_runs", t.horizon); err != nil {
		return err
	}
	if t.mode.noIndex {
		t.expectDoubles()
	}
	return nil
}

// expectDoubles forgives everything but the absence of doubles.
func (t *trial) expectDoubles() {
	doubles := 0
	for _, v := range t.Found() {
		if v.Rule == "double" || v.Rule == "doubled" {
			doubles++
		}
	}
	t.Forget()
	t.Fact("doubles", doubles)
	t.Expect(doubles > 0, "blind", "no double was seen, though nothing kept servers apart")
}
