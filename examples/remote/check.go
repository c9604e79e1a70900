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
	missing               int // runs that have succeeded without an invoice
	unknown               int // invoices of no run
}

func (v verdict) String() string {
	return fmt.Sprintf("runs=%d attempts=%d kills=%d unfinished=%d missing=%d unknown=%d", v.runs, v.attempts, v.kills,
		v.unfinished, v.missing, v.unknown)
}

func (v verdict) fine() bool { return v.runs > 0 && v.unfinished+v.missing+v.unknown == 0 }

const restWithin = time.Minute

// rest pauses the schedule, and waits until each run has ended, or the time is over.
func (g *stage) rest(ctx context.Context) error {
	for _, customer := range shop.Customers {
		if err := g.store.Pause(ctx, customer, "the show is over"); err != nil {
			return err
		}
	}
	return g.until(ctx, restWithin, func(v verdict) bool { return v.unfinished == 0 })
}

// until waits for a verdict, at most so long. The end of that time is no error: the check says what is missing.
func (g *stage) until(ctx context.Context, atMost time.Duration, seen func(verdict) bool) error {
	within, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		v, err := g.check(within)
		if within.Err() != nil {
			return ctx.Err()
		}
		if err != nil || seen(v) {
			return err
		}
		_ = run.Sleep(within, 100*time.Millisecond) // the next check sees the end
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
	invoices := map[string]bool{}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "part-") { // of a worker that was killed
			invoices[f.Name()] = true
		}
	}
	v.runs = len(runs)
	for _, r := range runs {
		v.attempts += r.Attempt
		name := worker.Name(r.ID.String())
		if r.State != scheduler.RunSucceeded {
			v.unfinished++
		} else if !invoices[name] {
			v.missing++
		}
		delete(invoices, name)
	}
	v.unknown = len(invoices)
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
