package remote

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

//go:embed remote.sql
var sqlText string

var sql = lab.SQL(sqlText)

var flags struct{ runs int }

// Scenario is that of a way.
func (w Way) Scenario() lab.Scenario {
	return lab.Scenario{
		Name: "remote", About: w.About,
		Full:  lab.Size{For: 90 * time.Second},
		Quick: lab.Size{For: 10 * time.Second},
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&flags.runs, "runs", 0, "remote: runs that are triggered while -for lasts; 0 is 10,000, or "+
				"1,000 with -quick")
		},
		SQL: sql,
		Rules: []string{"twice", "forgotten", "wrongkey", "unsaid", "unexplained", "dropped", "strange",
			"idle"},
		Run: w.run, Work: w.work,
	}
}

const (
	full, quick = 10_000, 1000
	restWithin  = 2 * time.Minute
	triggerers  = 4
	// runs that are open at a time: more would wait for longer than lostAfter on a busy machine, and each of them would
	// be sent again, behind the others
	mostOpen = 100
	strikes  = 8 // one blow in so many is at what both sides share
)

// trial is one run of the scenario.
type trial struct {
	*lab.Lab
	way    Way
	runs   int
	store  *scheduler.Store
	medium Medium
	open   atomic.Int64 // runs that have not ended
}

func (w Way) run(ctx context.Context, s lab.Settings) (err error) {
	t := &trial{way: w, runs: flags.runs}
	if t.runs == 0 {
		t.runs = full
		if s.Quick {
			t.runs = quick
		}
	}
	if t.medium, err = w.Open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.medium.Close()) }()
	return s.Try(ctx, lab.Trial{Title: "over " + w.Name, Server: pgdev.Options{Durable: true}, Prepare: t.prepare,
		Places: 2 * places, // two here, and two there
		DSN:    func(int) string { return t.Server.DSN() + "&pool_max_conns=16" },
		Task: func(place int) any {
			return task{Here: place%2 == 0, Place: Place{Address: t.medium.Address, No: place / 2}}
		},
		Break: t.rage, Judge: verdict{runs: t.runs, strikes: t.medium.Strike != nil}.judge})
}

func (t *trial) prepare(ctx context.Context, l *lab.Lab) (err error) {
	t.Lab = l
	if t.store, err = scheduler.NewStore(t.Pool, scheduler.StoreOptions{}); err != nil {
		return err
	}
	return l.Bus.InstallQueue(ctx, endpoint, work{}.Kind())
}

// rage triggers all runs, kills workers meanwhile, and waits for the ends of the runs.
func (t *trial) rage(ctx context.Context, _ *lab.Lab) error {
	if err := t.declared(ctx); err != nil {
		return err
	}
	striking, calm := context.WithCancel(ctx)
	defer calm()
	all := run.NewGroup(ctx)
	all.Go(func(context.Context) error { return t.strikeUntil(striking) })
	all.Go(func(ctx context.Context) error {
		defer calm()
		return t.trigger(ctx)
	})
	if err := all.Wait(); err != nil {
		return err
	}
	t.Printf("%d runs are triggered, and no process is killed any more", t.runs)
	begun := time.Now()
	err := lab.Await(ctx, restWithin, "the end of all runs", func() (bool, error) {
		open := 0
		if err := t.Row(ctx, sql.Get("open"), nil, &open); err != nil || open > 0 {
			return false, err
		}
		left, err := t.Left(ctx)
		return left == 0, err
	})
	t.Fact("rested", time.Since(begun))
	if errors.Is(err, lab.ErrBroken) {
		return nil // the check says which are open
	}
	return err
}

// declared waits until the processes here have declared their manifests.
func (t *trial) declared(ctx context.Context) error {
	return lab.Await(ctx, restWithin, "the declaration of the manifests", func() (bool, error) {
		all, err := t.store.Manifest(ctx, manifest(manifests-1))
		if errors.Is(err, scheduler.ErrNoManifest) {
			return false, nil
		}
		return all.Name != "", err
	})
}

// strikeUntil kills a worker every second or so until ctx ends, and strikes what both sides share some times.
func (t *trial) strikeUntil(ctx context.Context) error {
	for n := 1; run.Sleep(ctx, t.Between(200*time.Millisecond, 1500*time.Millisecond)) == nil; n++ {
		if t.medium.Strike != nil && n%strikes == strikes/2 {
			if err := t.medium.Strike(context.WithoutCancel(ctx), t.Lab); err != nil {
				return err
			}
			continue
		}
		if err := t.Crew.KillAny(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// trigger triggers the runs, spread over the time of the scenario.
func (t *trial) trigger(ctx context.Context) error {
	begun := time.Now()
	all := run.NewGroup(ctx)
	all.Go(t.countOpen)
	left := atomic.Int64{}
	left.Store(triggerers)
	for first := range triggerers {
		all.Go(func(ctx context.Context) error {
			for n := first; n < t.runs; n += triggerers {
				due := begun.Add(t.For * time.Duration(n) / time.Duration(t.runs))
				err := run.Sleep(ctx, time.Until(due))
				for err == nil && t.open.Load() >= mostOpen {
					err = run.Sleep(ctx, 20*time.Millisecond)
				}
				if err != nil {
					return err
				}
				if err := t.triggerOne(ctx, n); err != nil {
					return err
				}
			}
			if left.Add(-1) == 0 {
				all.Stop() // nobody has to know how many are open
			}
			return nil
		})
	}
	return all.Wait()
}

// countOpen counts the runs that have not ended, again and again.
func (t *trial) countOpen(ctx context.Context) error {
	for {
		open := int64(0)
		if err := t.Row(ctx, sql.Get("open"), nil, &open); err != nil {
			return err
		}
		t.open.Store(open)
		if err := run.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (t *trial) triggerOne(ctx context.Context, n int) error {
	var id saga.ID
	id, err := t.store.Trigger(ctx, manifest(n%manifests), work{N: n}, scheduler.TriggerOptions{})
	if err != nil {
		return fmt.Errorf("trigger run %d: %w", n, err)
	}
	return t.Exec(ctx, sql.Get("triggered"), id, n)
}
