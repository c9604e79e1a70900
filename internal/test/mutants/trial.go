package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// verdict is the result of a trial, see the package comment.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	partly   verdict = "partly"
	hung     verdict = "hung"
	broken   verdict = "broken"
)

const (
	testTime    = 2 * time.Minute
	compileTime = 3 * time.Minute // in addition, for a machine without a build cache
)

// laboratory holds the resources of trials.
type laboratory struct {
	root string // of the module
	dir  string // for the changed files, and for the programs
	dsn  string // of one Postgres for all
	out  io.Writer

	programs map[string]string // programs of the tests of packages, with all woven mutants, by place
	woven    map[string]bool   // names of the mutants that are in them and can be tried there
}

// place names the program of the tests of a target.
func (t target) place() string { return t.tags + " " + path.Clean(t.pkg) }

// try runs a mutant's tests without its guard. A woven mutant counts as killed if the tests of the woven engine kill
// it. If it survives there, it gets a second trial, compiled by itself: a test may start a program that does not get
// the variable, or read the text of the code.
func (l laboratory) try(ctx context.Context, m mutant) (verdict, string, error) {
	if l.woven[m.name] && l.programs[m.target.place()] != "" {
		output, failure := l.start(ctx, m.target, testTime, onVariable+"="+m.name)
		v := judge(m.target, output, failure)
		if v == killed || ctx.Err() != nil {
			return v, output, ctx.Err()
		}
		_, _ = fmt.Fprintf(l.out, "%-9s %-40s is compiled alone and tried again\n", v, m.name)
	}
	dir, err := os.MkdirTemp(l.dir, m.name+"-")
	if err != nil {
		return "", "", err
	}
	texts, err := m.files(l.root)
	if err != nil {
		return "", "", err
	}
	list, err := overlay(l.root, dir, texts)
	if err != nil {
		return "", "", err
	}
	output, failure := l.test(ctx, m.target, testTime, "-overlay", list)
	return judge(m.target, output, failure), output, errors.Join(ctx.Err(), os.RemoveAll(dir))
}

// test compiles and runs tests, and returns their output.
func (l laboratory) test(ctx context.Context, t target, patience time.Duration, flags ...string) (string, error) {
	args := slices.Concat([]string{"go", "test", "-count=1", "-vet=off", "-ldflags=-w", "-v", "-tags", t.tags,
		"-timeout", patience.String()}, flags, []string{"-run", t.pattern(), t.pkg})
	return l.command(ctx, l.root, patience+compileTime, args)
}

// start runs tests of the woven engine like the go command, and returns their output.
func (l laboratory) start(ctx context.Context, t target, patience time.Duration, env ...string) (string, error) {
	program := l.programs[t.place()]
	if program == "" {
		return l.test(ctx, t, patience)
	}
	return l.command(ctx, filepath.Join(l.root, t.pkg), patience+time.Minute, []string{program, "-test.paniconexit0",
		"-test.v=true", "-test.timeout=" + patience.String(), "-test.run=" + t.pattern()}, env...)
}

// command runs a program in a directory, and returns its output.
func (l laboratory) command(ctx context.Context, dir string, limit time.Duration, args []string, env ...string) (string,
	error,
) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir, command.WaitDelay = dir, 5*time.Second
	command.Env = append(os.Environ(), "PWD="+dir, "DATABASE_URL="+l.dsn, pgdev.PatienceVariable+"=1")
	command.Env = append(command.Env, env...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// judge reads the output of a run of tests with a mutant.
func judge(t target, output string, failure error) verdict {
	switch {
	case failure == nil && len(t.missing(output)) == 0:
		return survived
	case failure == nil, strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return broken
	case strings.Contains(output, "panic: test timed out after"):
		return hung
	case strings.Contains(output, "\npanic: "):
		return killed
	}
	switch len(t.failed(output)) {
	case 0:
		return broken
	case len(t.tests):
		return killed
	}
	return partly
}

// failed returns the tests that failed.
func (t target) failed(output string) []string {
	return slices.DeleteFunc(slices.Clone(t.tests), func(name string) bool { return !reports(output, "FAIL", name) })
}

// missing returns the tests that did not pass.
func (t target) missing(output string) []string {
	return slices.DeleteFunc(slices.Clone(t.tests), func(name string) bool { return reports(output, "PASS", name) })
}

// reports finds the line of go test on one test.
func reports(output, result, test string) bool {
	return strings.Contains(output, "--- "+result+": "+test+" (")
}

// control runs every named test of the mutants on the unchanged engine, each package once. Tests that fail beside all
// the others run again by themselves, as they do with a mutant. If tests fail only in the woven engine, because they
// read its code, their mutants are compiled alone.
func (l laboratory) control(ctx context.Context, jobs int, mutants []mutant) error {
	var mu sync.Mutex
	var faults []error
	err := each(ctx, jobs, targets(mutants), func(ctx context.Context, t target) error {
		patience, begin := testTime*time.Duration(1+len(t.tests)/10), time.Now()
		output, failure := l.start(ctx, t, patience)
		var missing []string
		type attempt = func(context.Context, target, time.Duration, ...string) (string, error)
		for _, again := range []attempt{l.start, l.test} {
			if missing = t.missing(output); len(missing) == 0 || ctx.Err() != nil {
				break
			}
			var more string
			more, failure = again(ctx, target{pkg: t.pkg, tags: t.tags, tests: missing}, patience)
			output += more
		}
		mu.Lock()
		defer mu.Unlock()
		theirs := func(name string) bool { return slices.Contains(missing, name) }
		for _, m := range mutants {
			if m.target.place() == t.place() && slices.ContainsFunc(m.target.tests, theirs) {
				delete(l.woven, m.name)
			}
		}
		if missing := t.missing(output); failure != nil || len(missing) > 0 {
			faults = append(faults, fmt.Errorf("without any mutant, %v of %s did not pass: %w\n%s", missing, t.pkg,
				failure, tail(about(output, missing))))
		}
		_, _ = fmt.Fprintf(l.out, "tested    %-40s %6.1fs\n", t.pkg, time.Since(begin).Seconds())
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return errors.Join(faults...)
}

// each calls f for all items, for some at the same time, until one fails.
func each[T any](ctx context.Context, jobs int, items []T, f func(context.Context, T) error) error {
	queue := make(chan T, len(items))
	for _, item := range items {
		queue <- item
	}
	close(queue)
	group := run.NewGroup(ctx)
	for range max(1, jobs) {
		group.Go(func(ctx context.Context) error {
			for item := range queue {
				if err := f(ctx, item); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// targets returns the tests that mutants name, by package and build tags.
func targets(mutants []mutant) []target {
	var all []target
	for _, m := range mutants {
		at := slices.IndexFunc(all, func(t target) bool { return t.pkg == m.target.pkg && t.tags == m.target.tags })
		if at < 0 {
			at = len(all)
			all = append(all, target{pkg: m.target.pkg, tags: m.target.tags})
		}
		for _, name := range m.target.tests {
			if !slices.Contains(all[at].tests, name) {
				all[at].tests = append(all[at].tests, name)
			}
		}
	}
	return all
}

// about returns the lines that these tests wrote. Lines that belong to no test are kept, too.
func about(output string, tests []string) string {
	var lines []string
	theirs := true
	for line := range strings.Lines(output) {
		if name, is := strings.CutPrefix(line, "=== "); is {
			_, name, _ = strings.Cut(name, " ")
			name, _, _ = strings.Cut(strings.TrimSpace(name), "/")
			theirs = slices.Contains(tests, name)
			continue
		}
		if theirs && !strings.HasPrefix(strings.TrimSpace(line), "--- PASS: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// tail returns the end of a run's output, which has the cause.
func tail(output string) string {
	const most = 6000
	return output[max(0, len(output)-most):]
}
