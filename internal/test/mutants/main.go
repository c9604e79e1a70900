package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// settings are the flags.
type settings struct {
	run     string
	jobs    int
	record  string
	page    string
	random  int
	seed    string
	in      string
	own     bool
	list    bool
	verbose bool
	out     io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := settings{out: os.Stdout}
	flag.StringVar(&s.run, "run", "", "try only the mutants whose names match this regular expression")
	flag.IntVar(&s.jobs, "jobs", 2*runtime.NumCPU(), "try this many mutants at the same time: most trials wait")
	flag.StringVar(&s.record, "record", "", "write the result of each mutant into this file, and skip mutants that "+
		"the same tests have killed on the same code")
	flag.StringVar(&s.page, "page", "", "write the result into this file, as a page; with -record, and without -run")
	flag.IntVar(&s.random, "random", 0, "draw this many mutants at random, in place of the catalogue")
	flag.StringVar(&s.seed, "seed", "", "the seed of the draw: the commit before it")
	flag.StringVar(&s.in, "in", "", "draw only from packages whose directories match this regular expression")
	flag.BoolVar(&s.own, "own", false, "try random mutants only with the tests of their own packages")
	flag.BoolVar(&s.list, "list", false, "print the mutants and their guards, and run no mutant")
	flag.BoolVar(&s.verbose, "v", false, "print the tests' output for every mutant, not only for survivors")
	flag.Parse()
	if err := mutants(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func mutants(ctx context.Context, s settings) error {
	if s.page != "" && (s.record == "" || s.run != "" || s.in != "" || s.own) {
		return errors.New("-page wants -record, and all mutants and tests: no -run, -in or -own")
	}
	if s.random > 0 {
		return random(ctx, s)
	}
	chosen, err := choose(s.run)
	if err != nil {
		return err
	}
	if s.list {
		for _, m := range chosen {
			_, _ = fmt.Fprintf(s.out, "%s (%s)\n    %s\n    %s %s\n", m.name, m.theme, m.guards, m.target.pkg,
				strings.Join(m.target.tests, " "))
		}
		return nil
	}
	l, clean, err := openLaboratory(ctx)
	if err != nil {
		return err
	}
	l.out = s.out
	return errors.Join(l.tryAll(ctx, s, chosen), clean())
}

func choose(pattern string) ([]mutant, error) {
	all, err := catalog()
	if err != nil {
		return nil, err
	}
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !wanted.MatchString(m.name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant is named like %q", pattern)
	}
	return chosen, nil
}

// openLaboratory starts one Postgres for all trials: starting one takes longer than most tests.
func openLaboratory(ctx context.Context) (l laboratory, clean func() error, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return l, nil, err
	}
	dir, err := os.MkdirTemp("", "edda-mutants-")
	if err != nil {
		return l, nil, err
	}
	server, err := pgdev.Start(ctx, pgdev.Options{})
	if err != nil {
		return l, nil, errors.Join(err, os.RemoveAll(dir))
	}
	clean = func() error { return errors.Join(server.Stop(), os.RemoveAll(dir)) }
	return laboratory{root: root, dir: dir, dsn: server.DSN()}, clean, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// tryAll tries the chosen mutants, except mutants that the record has as killed by the same tests on the same code.
func (l *laboratory) tryAll(ctx context.Context, s settings, chosen []mutant) error {
	for _, m := range chosen {
		if _, err := m.files(l.root); err != nil {
			return err
		}
	}
	r, err := openRecord(ctx, l.root, s.record, s.page, func() (map[string]string, error) {
		return keysOf(ctx, l.root, s.page, chosen)
	})
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(chosen), func(m mutant) bool { return r.killed(m.name) })
	t := &tally{settings: s, record: r, begin: time.Now(), left: len(left)}
	if err := l.prepare(ctx, t, left); err != nil {
		return errors.Join(err, r.close())
	}
	err = errors.Join(each(ctx, s.jobs, left, func(ctx context.Context, m mutant) error {
		begin := time.Now()
		v, output, err := l.try(ctx, m)
		if err != nil {
			return err
		}
		return t.add(m, v, output, time.Since(begin))
	}), r.close())
	dead := len(chosen) - len(left) + t.killed
	_, _ = fmt.Fprintf(s.out, "mutants=%d killed=%d unfinished=%d\n", len(chosen), dead, t.unfinished)
	if s.page != "" && err == nil {
		err = r.writePage(filepath.Join(l.root, s.page), chosen)
	}
	switch lived := len(left) - t.killed; {
	case err != nil:
		return err
	case lived > 0:
		return fmt.Errorf("%d lived: no test holds their guards in place", lived)
	}
	return nil
}

// prepare compiles the tests with all mutants in them, and checks that they pass while no mutant is on.
func (l *laboratory) prepare(ctx context.Context, t *tally, left []mutant) error {
	if err := l.compile(ctx, left); err != nil {
		return err
	}
	t.step("compiled", fmt.Sprintf("%d mutants together, %d to compile alone", len(l.woven), len(left)-len(l.woven)))
	if err := l.control(ctx, t.jobs, left); err != nil {
		return err
	}
	t.step("passed", "the engine as it is")
	return nil
}

// tally reports trials as they end. It is safe for concurrent use.
type tally struct {
	settings
	record *record
	begin  time.Time // of the current step

	mu                 sync.Mutex
	left               int // mutants to try
	tried              int
	killed, unfinished int // killed includes unfinished: mutants whose process died
}

// step reports the end of a step, and begins the next one.
func (t *tally) step(how, what string) {
	_, _ = fmt.Fprintf(t.out, "%-9s %-40s %6.1fs\n", how, what, time.Since(t.begin).Seconds())
	t.begin = time.Now()
}

func (t *tally) add(m mutant, v verdict, output string, took time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	how := string(v)
	switch {
	case v != killed:
	case len(m.target.failed(output)) > 0:
		t.killed++
	default:
		t.killed++
		t.unfinished++
		how = unfinished
	}
	t.tried++
	rest := time.Since(t.begin) / time.Duration(t.tried) * time.Duration(t.left-t.tried)
	_, _ = fmt.Fprintf(t.out, "%-9s %-40s %6.1fs  %d of %d, %v left\n", v, m.name, took.Seconds(), t.tried, t.left,
		rest.Round(time.Second))
	if v != killed {
		_, _ = fmt.Fprintf(t.out, "    %s\n    want failures of %v in %s, got %v\n", m.guards, m.target.tests,
			m.target.pkg, m.target.failed(output))
	}
	if t.verbose || v != killed && v != survived {
		_, _ = fmt.Fprintln(t.out, tail(output))
	}
	return t.record.add(m.name, how)
}
