package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/pgdev"
)

// verdict is how a trial ended, see the package comment.
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
	compileTime = 3 * time.Minute // on top of that, for a machine that has nothing compiled yet
)

// laboratory is what trials need.
type laboratory struct {
	root string // of the module
	dir  string // for the changed files
	dsn  string // of one Postgres for all
}

// try runs a mutant's tests without its guard.
func (l laboratory) try(ctx context.Context, m mutant) (verdict, string, error) {
	dir, err := os.MkdirTemp(l.dir, m.name+"-")
	if err != nil {
		return "", "", err
	}
	list, err := m.overlay(l.root, dir)
	if err != nil {
		return "", "", err
	}
	output, failure := l.test(ctx, m.target, testTime, "-overlay", list)
	return judge(m.target, output, failure), output, ctx.Err()
}

// test runs tests, and returns what they wrote.
func (l laboratory) test(ctx context.Context, t target, patience time.Duration, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+compileTime)
	defer cancel()
	args := slices.Concat([]string{"test", "-count=1", "-vet=off", "-ldflags=-w", "-v", "-tags", t.tags, "-timeout",
		patience.String()}, flags, []string{"-run", t.pattern(), t.pkg})
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.WaitDelay = l.root, 5*time.Second
	command.Env = append(os.Environ(), "DATABASE_URL="+l.dsn, pgdev.PatienceVariable+"=1")
	output, err := command.CombinedOutput()
	return string(output), err
}

// judge reads what a run of tests with a mutant in it wrote.
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

// failed are the tests that failed.
func (t target) failed(output string) []string {
	return slices.DeleteFunc(slices.Clone(t.tests), func(name string) bool { return !reports(output, "FAIL", name) })
}

// missing are the tests that did not pass.
func (t target) missing(output string) []string {
	return slices.DeleteFunc(slices.Clone(t.tests), func(name string) bool { return reports(output, "PASS", name) })
}

// reports finds the line of go test on one test.
func reports(output, result, test string) bool {
	return strings.Contains(output, "--- "+result+": "+test+" (")
}

// control runs every named test of the mutants on the engine as it is, each package once. Those that fail beside all
// the others run again by themselves, as they do with a mutant.
func (l laboratory) control(ctx context.Context, mutants []mutant) error {
	var faults []error
	for _, t := range targets(mutants) {
		output, failure := l.pass(ctx, t)
		if missing := t.missing(output); len(missing) > 0 && ctx.Err() == nil {
			var again string
			again, failure = l.pass(ctx, target{pkg: t.pkg, tags: t.tags, tests: missing})
			output += again
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if missing := t.missing(output); failure != nil || len(missing) > 0 {
			faults = append(faults, fmt.Errorf("without any mutant, %v of %s did not pass: %w\n%s", missing, t.pkg,
				failure, tail(about(output, missing))))
		}
	}
	return errors.Join(faults...)
}

// pass runs tests without a mutant, with time for as many as they are.
func (l laboratory) pass(ctx context.Context, t target) (string, error) {
	return l.test(ctx, t, testTime*time.Duration(1+len(t.tests)/10))
}

// targets are the tests that mutants name, by package and build tags.
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

// tail is the end of what a run wrote, where the story is.
func tail(output string) string {
	const most = 6000
	return output[max(0, len(output)-most):]
}
