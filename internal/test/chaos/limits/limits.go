package limits

import (
	"context"
	_ "embed"
	"fmt"
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
	Run:   limits, Work: work,
}

const (
	most     = 5 // the largest limit
	reuse    = lease + 2*time.Second
	defaults = 20 * time.Second
	finish   = 2 * time.Minute
)

func limits(ctx context.Context, s lab.Settings) error {
	l, err := lab.Open(ctx, s, pgdev.Options{Durable: true}, sql)
	if err != nil {
		return err
	}
	defer l.Close()
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
	if err := setLimit(ctx, l, 3); err != nil {
		return err
	}
	workers := l.Workers(ctx, task{})
	err = lab.During(ctx, workers, func(ctx context.Context) error { return breakLimits(ctx, l, workers) })
	if err != nil {
		return err
	}
	if err := judgeLimits(ctx, l); err != nil {
		return err
	}
	again, err := dieAtDefaults(ctx, l)
	if err != nil {
		return err
	}
	l.Fact("again", again)
	l.Expect(again <= defaults, "again", "the messages of a killed worker ran again after %v, and not within %v", again,
		defaults)
	return l.Conclude(ctx, "", sql, "above", "stale", "twice", "lost", "doubled", "starved")
}

// breakLimits changes the limit all the time, strikes every few seconds, and lets the workers finish in peace.
func breakLimits(ctx context.Context, l *lab.Lab, workers *procs.Workers) error {
	next := time.Now().Add(3 * time.Second)
	for end := time.Now().Add(l.For); time.Now().Before(end); {
		if err := run.Sleep(ctx, l.Between(300*time.Millisecond, 2800*time.Millisecond)); err != nil {
			return err
		}
		if err := setLimit(ctx, l, 1+l.Random.IntN(most)); err != nil {
			return err
		}
		p := workers.Any(l.Random)
		if time.Now().Before(next) || p == nil {
			continue
		}
		strike := func() error { return l.Kill(ctx, p) }
		if l.Random.IntN(2) == 0 {
			strike = func() error {
				return l.Freeze(ctx, p, lease+l.Between(0, 2*time.Second),
					func() error { return l.Exec(ctx, sql.Get("slot_expiries"), p.Name) })
			}
		}
		if err := strike(); err != nil {
			return err
		}
		next = time.Now().Add(l.Between(2*time.Second, 5*time.Second))
	}
	if err := setLimit(ctx, l, 50); err != nil {
		return err
	}
	return l.Finish(ctx, finish)
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
