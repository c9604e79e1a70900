package house

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The code in README.md is a program and a test that run.
func TestReadmeShowsTheProgram(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	blocks := []string{read(t, "examples/hello/main.go"), read(t, "examples/hello/order_test.go")}
	for _, want := range blocks {
		if !strings.Contains(readme, "```go\n"+want+"```\n") {
			t.Errorf("README.md has not this block:\n%s", want)
		}
	}
	if n := strings.Count(readme, "```go\n"); n != len(blocks) {
		t.Errorf("README.md has %d blocks of code, want %d", n, len(blocks))
	}
	for _, command := range []string{"`make demo`", "`make test`"} {
		if !strings.Contains(readme, command) {
			t.Errorf("README.md does not name %s, which is what a clone has to run", command)
		}
	}
	if lines := strings.Count(readme, "\n"); lines >= 200 {
		t.Errorf("README.md has %d lines, want less than 200", lines)
	}
}

// Each promise has a test as a witness, and each of these tests can fail: a mutant names it.
func TestPromisesHaveWitnessesThatBite(t *testing.T) {
	t.Parallel()
	promises := readPromises(read(t, "docs/reference/promises.md"))
	if len(promises) < 20 {
		t.Fatalf("the table of promises has %d lines, want 20 or more", len(promises))
	}
	breaks := readBreaks(t)
	for _, p := range promises {
		for _, fault := range p.faults(breaks) {
			t.Errorf("docs/reference/promises.md: %s", fault)
		}
	}
}

// promise is a line of the table: the promise, and the tests that fail if it is broken.
type promise struct {
	what  string
	tests []string
}

// readPromises reads the table under "What is promised".
func readPromises(readme string) (promises []promise) {
	_, table, _ := strings.Cut(readme, "\n## What is promised\n\n| promise | witness |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		what, witnesses, _ := strings.Cut(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		p := promise{what: what}
		for _, m := range testName.FindAllStringSubmatch(witnesses, -1) {
			p.tests = append(p.tests, m[1])
		}
		promises = append(promises, p)
	}
	return promises
}

// faults returns the witnesses that no mutant names. A mutant that names a case of a test also names the test, which
// fails with its case.
func (p promise) faults(breaks []breakage) (faults []string) {
	if len(p.tests) == 0 {
		faults = append(faults, fmt.Sprintf("no test is a witness of %q", p.what))
	}
	for _, test := range p.tests {
		if !slices.ContainsFunc(breaks, func(b breakage) bool { return slices.ContainsFunc(b.tests, isOf(test)) }) {
			faults = append(faults, fmt.Sprintf("no mutant names %s, the witness of %q", test, p.what))
		}
	}
	return faults
}

// isOf returns a function that reports whether a mutant's test, with its package, is the test of this name or a case
// of it.
func isOf(test string) func(string) bool {
	return func(broken string) bool {
		_, name, _ := strings.Cut(broken, " ")
		name, _, _ = strings.Cut(name, "/")
		return name == test
	}
}

// The check itself must report these faults.
func TestPromisesWithoutWitnessesAreSeen(t *testing.T) {
	t.Parallel()
	breaks := []breakage{{tests: []string{"bus TestA", "bus TestB/a_case"}}, {tests: []string{"saga TestCase"}}}
	for witnesses, want := range map[string]string{
		"`TestA`":                     "",
		"`make crash`; `TestA`":       "",
		"`TestA`, `TestB`":            "",
		"`TestA`, `TestC`":            "no mutant names TestC",
		"`TestA`, `TestCas`, `TestB`": "no mutant names TestCas,",
		"`make crash`":                "no test is a witness",
		"":                            "no test is a witness",
	} {
		var faults []string
		for _, p := range readPromises("# Edda\n\n## What is promised\n\n| promise | witness |\n|---|---|\n| It " +
			"works. | " + witnesses + " |\n\n## More\n\n| `TestX` | |\n") {
			faults = append(faults, p.faults(breaks)...)
		}
		if got := strings.Join(faults, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", witnesses, got, want)
		}
	}
}

// outdented removes the tabs that the first line begins with from every line.
func outdented(code string) string {
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	return strings.ReplaceAll(strings.TrimPrefix(code, indent), "\n"+indent, "\n")
}

// The README and the benchmarks' page have the same figures, so that a new run changes both or neither.
func TestReadmeHasTheFiguresOfTheBenchmarks(t *testing.T) {
	t.Parallel()
	_, about, found := strings.Cut(read(t, "README.md"), "\n## How fast\n")
	about, _, ended := strings.Cut(about, "\n## ")
	if !found || !ended {
		t.Fatal("the README has no part about speed")
	}
	figures := regexp.MustCompile(`\d+[,.]\d+`).FindAllString(about, -1)
	if len(figures) < 6 {
		t.Errorf("the README has %d figures, want those of three peers", len(figures))
	}
	page := read(t, "docs/reference/benchmarks.md")
	for _, figure := range figures {
		if figure != "10,000" && !strings.Contains(page, " "+figure+" ") {
			t.Errorf("docs/reference/benchmarks.md does not have %s", figure)
		}
	}
}
