package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/edda-go/edda/examples/remote/shop"
	"github.com/edda-go/edda/examples/remote/worker"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// verdict is what came of all runs.
type verdict struct {
	runs, attempts, kills int
	unfinished            int // runs that have not succeeded
	missing               int // runs without a report
	unknown               int // reports of no run
}

func (v verdict) String() string {
	return fmt.Sprintf("runs=%d attempts=%d kills=%d unfinished=%d missing=%d unknown=%d", v.runs, v.attempts, v.kills,
		v.unfinished, v.missing, v.unknown)
}

func (v verdict) fine() bool { return v.runs > 0 && v.unfinished+v.missing+v.unknown == 0 }

const restWithin = time.Minute

// rest pauses the schedule, and waits until each run has ended, or the time is over.
func (g *stage) rest(ctx context.Context) error {
	for _, region := range shop.Regions {
		if err := g.store.Pause(ctx, region, "the show is over"); err != nil {
			return err
		}
	}
	return g.until(ctx, func(v verdict) bool { return v.unfinished == 0 })
}

// until waits for a verdict, at most a minute: the check says what is missing.
func (g *stage) until(ctx context.Context, seen func(verdict) bool) error {
	ctx, cancel := context.WithTimeout(ctx, restWithin)
	defer cancel()
	for {
		v, err := g.check(ctx)
		if err != nil || seen(v) {
			return err
		}
		if run.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
}

// check compares the runs with the files that the worker has written.
func (g *stage) check(ctx context.Context) (v verdict, err error) {
	runs, err := g.allRuns(ctx)
	if err != nil {
		return v, err
	}
	files, err := os.ReadDir(g.dir)
	if err != nil {
		return v, err
	}
	reports := map[string]bool{}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "part-") { // of a worker that was killed
			reports[f.Name()] = true
		}
	}
	v.runs = len(runs)
	for _, r := range runs {
		v.attempts += r.Attempt
		name := worker.Name(r.ID.String())
		if r.State != scheduler.RunSucceeded {
			v.unfinished++
		} else if !reports[name] {
			v.missing++
		}
		delete(reports, name)
	}
	v.unknown = len(reports)
	return v, nil
}

func (g *stage) allRuns(ctx context.Context) (all []scheduler.RunInfo, err error) {
	for after := (saga.ID{}); ; {
		page, err := g.store.Runs(ctx, scheduler.RunFilter{After: after, Limit: scheduler.MostListed})
		if err != nil || len(page) == 0 {
			return all, err
		}
		all, after = append(all, page...), page[len(page)-1].ID
	}
}
