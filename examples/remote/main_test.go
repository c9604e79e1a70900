package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/chaos/border/cluster"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the node of the broker, the shop and the worker, too.
func TestMain(m *testing.M) {
	cluster.RunNode()
	if procs.IsWorker(roleVariable) {
		if err := play(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}

func TestEveryRunHasItsInvoice(t *testing.T) {
	var out bytes.Buffer
	if err := show(t.Context(), settings{lasting: 6 * time.Second, kills: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	said := out.String()
	sum := regexp.MustCompile(`runs=[1-9]\d* attempts=[1-9]\d* kills=[1-9]\d* unfinished=0 missing=0 unknown=0`)
	if !sum.MatchString(said) || !strings.Contains(said, "was killed") {
		t.Errorf("it said\n%s", said)
	}
}

// The shop runs its schedule while the broker is away, and the runs are done when it is there.
func TestShopWaitsForTheBroker(t *testing.T) {
	g := &stage{}
	defer func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.broker.Kill(0); err != nil {
		t.Fatal(err)
	}
	all := run.NewGroup(t.Context())
	all.Go(procs.NewWorkers(2, g.job, procs.Options{}).Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := g.until(ctx, restWithin, func(v verdict) bool { return v.runs > 8 }); err != nil {
			return err
		}
		if err := g.broker.Restart(ctx, 0); err != nil {
			return err
		}
		return g.rest(ctx)
	})
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if v, err := g.check(t.Context()); err != nil || !v.fine() || v.runs <= 8 {
		t.Errorf("%v, %v", v, err)
	}
}

// The end of its own time is a verdict, and that of its caller an error.
func TestWaitingEndsWithAVerdict(t *testing.T) {
	g := &stage{}
	defer func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	never := func(verdict) bool { return false }
	for _, atMost := range []time.Duration{time.Nanosecond, 50 * time.Millisecond} {
		if err := g.until(t.Context(), atMost, never); err != nil {
			t.Errorf("after %v: %v", atMost, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := g.until(ended, time.Hour, never); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestVerdictIsFineOnlyIfNothingIsWrong(t *testing.T) {
	t.Parallel()
	for want, all := range map[bool][]verdict{
		true:  {{runs: 1}},
		false: {{}, {runs: 1, unfinished: 1}, {runs: 1, missing: 1}, {runs: 1, unknown: 1}},
	} {
		for _, v := range all {
			if v.fine() != want {
				t.Errorf("%v is fine: %t, want %t", v, !want, want)
			}
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-for", "0s"}, {"-for", "48h"}, {"more"}, {"-unknown"}} {
		var complaints bytes.Buffer
		if code := start(args, t.Output(), &complaints); code != 2 || complaints.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, complaints.String())
		}
	}
}
