package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/edda-go/edda/examples/remote/shop"
	"github.com/edda-go/edda/examples/remote/worker"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// office opens and closes the schedule, and compares its runs with the files that the worker has written.
type office struct {
	store    *scheduler.Store
	invoices string
}

// errWrong is the answer of the check.
var errWrong = errors.New("not every run is as it should be")

const restWithin = time.Minute // how long the runs may take after the schedule was paused

// open lets the schedule run for a while, pauses it, and waits until each run has ended.
func (o office) open(ctx context.Context, lasting time.Duration, out io.Writer) error {
	if err := o.each(shop.Customers, func(c string) error { return o.store.Resume(ctx, c) }); err != nil {
		return err // they were paused when this ran before
	}
	if err := sleep(ctx, lasting); err != nil {
		return err
	}
	closed := func(c string) error { return o.store.Pause(ctx, c, "the office is closed") }
	if err := o.each(shop.Customers, closed); err != nil {
		return err
	}
	for end := time.Now().Add(restWithin); ; {
		v, err := o.check(ctx)
		if err != nil {
			return err
		}
		if v.unfinished == 0 || time.Now().After(end) {
			_, _ = fmt.Fprintln(out, v)
			if !v.fine() {
				return errWrong
			}
			return nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// each ignores manifests that the shop has not declared yet.
func (o office) each(names []string, do func(string) error) error {
	for _, name := range names {
		if err := do(name); err != nil && !errors.Is(err, scheduler.ErrNoManifest) {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.New("interrupted: nothing was checked")
	}
}

// verdict counts the outcomes of all runs.
type verdict struct {
	runs, attempts int
	unfinished     int // runs that have not succeeded
	missing        int // runs that have succeeded without an invoice
}

func (v verdict) String() string {
	return fmt.Sprintf("runs=%d attempts=%d unfinished=%d missing=%d", v.runs, v.attempts, v.unfinished, v.missing)
}

func (v verdict) fine() bool { return v.runs > 0 && v.unfinished+v.missing == 0 }

func (o office) check(ctx context.Context) (v verdict, err error) {
	for after := (saga.ID{}); ; {
		page, err := o.store.Runs(ctx, scheduler.RunFilter{After: after, Limit: scheduler.MaxLimit})
		if err != nil || len(page) == 0 {
			return v, err
		}
		for _, r := range page {
			v.runs++
			v.attempts += r.Attempt
			_, err := os.Stat(filepath.Join(o.invoices, worker.Name(r.ID.String())))
			switch {
			case r.State != scheduler.RunSucceeded:
				v.unfinished++
			case errors.Is(err, fs.ErrNotExist):
				v.missing++
			case err != nil:
				return v, err
			}
			after = r.ID
		}
	}
}
