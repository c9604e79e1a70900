package limits

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/operate"
)

//go:embed limits.sql
var sqlText string

var sql = lab.SQL(sqlText)

// Limits changes a cluster-wide limit at random while workers are killed and frozen.
var Limits = lab.Scenario{
	Name: "limits", About: "a cluster-wide limit that changes, workers that are killed and frozen",
	Full:  lab.Size{Workers: 3, For: time.Minute},
	Quick: lab.Size{Workers: 3, For: 16 * time.Second},
	SQL:   sql, Rules: []string{"above", "stale", "twice", "lost", "doubled", "starved"},
	Run: func(ctx context.Context, s lab.Settings) error {
		return s.Try(ctx, lab.Trial{Server: pgdev.Options{Durable: true}, Task: lab.All(task{}),
			Prepare: sendJobs, Break: breakLimits, Judge: judgeAll})
	},
	Work: work,
}

const (
	most     = 5 // the largest limit
	reuse    = lease + 2*time.Second
	defaults = 20 * time.Second
	finish   = 2 * time.Minute
)

func sendJobs(ctx context.Context, l *lab.Lab) error {
	jobs := make([]job, 1000+50*int(l.For.Seconds())) // more than can be handled before the end
	for n := range jobs {
		jobs[n].N = n
	}
	if err := fill(ctx, l, jobs, slowJob{}.Kind()); err != nil {
		return err
	}
	if err := l.Exec(ctx, sql.Get("told_jobs"), len(jobs)); err != nil {
		return err
	}
	return setLimit(ctx, l, 3)
}

// breakLimits changes the limit all the time, strikes every few seconds, and lets the workers finish in peace.
func breakLimits(ctx context.Context, l *lab.Lab) error {
	expiries := func(p *procs.Process) error { return l.Exec(ctx, sql.Get("slot_expiries"), p.Name) }
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error { return changeLimit(ctx, l) })
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		return l.Crew.Rage(ctx, l.For, 2*time.Second, 5*time.Second,
			lab.Blow{Share: 1, Strike: l.Crew.KillAny},
			lab.Blow{Share: 1, Strike: func(ctx context.Context) error {
				return l.Crew.FreezeAny(ctx, lease, lease+2*time.Second, expiries)
			}})
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if err := setLimit(ctx, l, 50); err != nil {
		return err
	}
	return l.Finish(ctx, finish)
}

func judgeAll(ctx context.Context, l *lab.Lab) error {
	if err := judgeLimits(ctx, l); err != nil {
		return err
	}
	again, err := dieAtDefaults(ctx, l)
	l.Fact("again", again)
	l.Expect(again <= defaults, "again", "the messages of a killed worker ran again after %v, and not within %v", again,
		defaults)
	return err
}

// changeLimit changes the limit until ctx ends.
func changeLimit(ctx context.Context, l *lab.Lab) error {
	dice := rand.New(rand.NewPCG(l.Seed, 2))
	for {
		pause := 300*time.Millisecond + time.Duration(dice.Int64N(int64(2500*time.Millisecond)))
		if err := run.Sleep(ctx, pause); err != nil {
			return err
		}
		// a change that has begun is written down
		if err := setLimit(context.WithoutCancel(ctx), l, 1+dice.IntN(most)); err != nil {
			return err
		}
	}
}

// setLimit writes down when it asked for the change and when it was done: between the two either limit may be in force.
func setLimit(ctx context.Context, l *lab.Lab, n int) error {
	var asked time.Time
	if err := l.Row(ctx, `SELECT clock_timestamp()`, nil, &asked); err != nil {
		return err
	}
	operator, err := operate.New(l.Pool, operate.Options{})
	if err != nil {
		return err
	}
	if err := operator.Limits().Set(ctx, working, n); err != nil {
		return err
	}
	return l.Exec(ctx, `INSERT INTO chaos.change VALUES ($1, $2, clock_timestamp())`, n, asked)
}

// dieAtDefaults kills a worker with the default lease whose handlers run, and measures how long it takes until all of
// them run again in another one.
func dieAtDefaults(ctx context.Context, l *lab.Lab) (time.Duration, error) {
	const n = 10
	for i := range n {
		if _, err := l.Bus.Send(ctx, slowJob{N: i}); err != nil {
			return 0, err
		}
	}
	var last, killed time.Time
	begun := func(worker string) func() (bool, error) {
		return func() (bool, error) {
			count := 0
			err := l.Row(ctx, sql.Get("slow_runs"), []any{worker}, &count, &last)
			return count == n, err
		}
	}
	for _, name := range []string{"first", "second"} {
		p, err := procs.Start(l.Job(name, l.Server.DSN(), task{Defaults: true}))
		if err != nil {
			return 0, err
		}
		defer p.Kill()
		if err := lab.Await(ctx, time.Minute, "that slow jobs run in worker "+name, begun(name)); err != nil {
			return 0, err
		}
		if name == "second" {
			break
		}
		p.Kill()
		if err := l.Row(ctx, `SELECT clock_timestamp()`, nil, &killed); err != nil {
			return 0, fmt.Errorf("read the moment of the kill: %w", err)
		}
	}
	return last.Sub(killed), nil
}
