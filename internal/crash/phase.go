package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// phase breaks things in one way while messages flow. run returns what its line says, and the lines below it.
type phase struct {
	name string
	run  func(ctx context.Context, l *lab, s settings) (line, details string, err error)
}

// phases in the order in which they are run.
var phases = []phase{
	{"walk", runWalk},
	{"replies", runReplies},
	{"cuts", runCuts},
	{"random", runRandom},
	{"restarts", runRestarts},
}

func phaseNames() []string {
	var names []string
	for _, p := range phases {
		names = append(names, p.name)
	}
	return names
}

// runPhase begins with empty tables, breaks, lets everything come to rest, and judges.
func (l *lab) runPhase(ctx context.Context, p phase, s settings) error {
	begin := time.Now()
	if err := l.begin(ctx); err != nil {
		return err
	}
	stopFeed := l.feed(ctx)
	line, details, err := p.run(ctx, l, s)
	l.feedProxy.Set()
	if err := errors.Join(err, stopFeed(), ctx.Err()); err != nil {
		return err
	}
	if err := l.drain(ctx, time.Minute); err != nil {
		return err
	}
	found, err := l.judge(ctx)
	if err != nil {
		return err
	}
	l.retire(ctx)
	effects, err := number(ctx, l.pool, "crash_handled")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(l.out, "crash %s/%s: %s handled=%d %s deadlocks=%d in %v\n", l.workload, p.name, line, effects,
		tally(found), countOf(found, "deadlocks"), time.Since(begin).Round(100*time.Millisecond))
	_, _ = fmt.Fprint(l.out, details)
	if len(found) == 0 {
		return nil
	}
	_, _ = fmt.Fprintf(l.out, "  again: go run ./internal/crash -seed %d -workload %s -phase %s\n", l.seed, l.workload,
		p.name)
	return errors.Join(errViolated, tell(ctx, l.out, l.pool, found))
}

func countOf(found []violation, rule string) (n int) {
	for _, v := range found {
		if v.rule == rule {
			n++
		}
	}
	return n
}

// runWalk learns the statements of a clean run, and kills at each of them.
func runWalk(ctx context.Context, l *lab, s settings) (line, details string, err error) {
	var points []point
	if s.point != "" {
		p, err := parsePoint(s.point)
		if err != nil {
			return "", "", err
		}
		for range 20 {
			points = append(points, p)
		}
	} else {
		seen, err := l.learn(ctx, 3*time.Second)
		if err != nil {
			return "", "", err
		}
		counts := []int{1, 2, 5}
		if s.quick {
			counts = []int{2}
		}
		points = pointsOf(seen, counts)
	}
	w, err := l.walk(ctx, points)
	if err != nil {
		return "", "", err
	}
	return w.summary(), w.table(), nil
}
