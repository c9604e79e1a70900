package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func theCatalog(t *testing.T) []mutant {
	t.Helper()
	all, err := catalog()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// If a guard has moved, the mutant that removes it proves nothing. This test detects that without a database.
func TestEveryMutantApplies(t *testing.T) {
	t.Parallel()
	for _, m := range theCatalog(t) {
		if _, err := m.files(root); err != nil {
			t.Error(err)
		}
	}
}

// A mutant that names a renamed test kills nothing. Names of subtests are only known to a run.
func TestEveryNamedTestIsThere(t *testing.T) {
	t.Parallel()
	of := map[string][]string{} // by package
	for _, m := range theCatalog(t) {
		there, ok := of[m.target.pkg]
		if !ok {
			there = testsOf(t, m.target.pkg)
			of[m.target.pkg] = there
		}
		for _, name := range m.target.tests {
			if top, _, _ := strings.Cut(name, "/"); !slices.Contains(there, top) {
				t.Errorf("mutant %s: %s has no test %s", m.name, m.target.pkg, top)
			}
		}
	}
}

var testHead = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, head := range testHead.FindAllStringSubmatch(string(text), -1) {
			names = append(names, head[1])
		}
	}
	return names
}

func TestCatalogFaultsAreReported(t *testing.T) {
	t.Parallel()
	const head = "mutant x\nguards a promise\ntest ./bus TestX\n"
	tests := map[string]struct{ text, want string }{
		"no name":    {"mutant\nguards y\n", `mutant "": want a name`},
		"no promise": {"mutant x\n", "a line of guards"},
		"no test": {"mutant x\nguards y\ntest ./bus\nfile f\n-a\n+b\n",
			"want a package and the names of its tests"},
		"an empty test":   {"mutant x\nguards y\ntest\nfile f\n-a\n+b\n", "want a package and the names of its tests"},
		"two tests":       {head + "test ./saga TestY\nfile f\n-a\n+b\n", "mutant x has two lines of tests"},
		"no change":       {head, "mutant x changes nothing"},
		"nothing removed": {head + "file f\n+b\n", "replaces nothing"},
		"no difference":   {head + "file f\n-a\n+a\n", "replaces nothing"},
		"no file":         {head + "-a\n", "a change of no file"},
		"a strange word":  {head + "because it can\nfile f\n-a\n", `x.txt:4: "because": want mutant`},
		"no mutant":       {"guards y\n", "stands before the first mutant"},
	}
	for name, test := range tests {
		if _, err := parse("x", test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestHunkReplacesWholeLinesOnce(t *testing.T) {
	t.Parallel()
	mutants, err := parse("x", "mutant x\nguards y\n"+
		"test ./bus TestX TestY/a+b\nfile f\n  kept\n-\told\n+\tnew\n+more\n")
	if err != nil {
		t.Fatal(err)
	}
	m := mutants[0]
	if got, want := m.target.pattern(), `^TestX$|^TestY$/^a\+b$`; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
	tests := map[string]struct{ text, want string }{
		"first line":   {" kept\n\told\nlast\n", " kept\n\tnew\nmore\nlast\n"},
		"in between":   {"first\n kept\n\told\nlast\n", "first\n kept\n\tnew\nmore\nlast\n"},
		"twice":        {" kept\n\told\n kept\n\told\n", ""},
		"part of line": {"x kept\n\told\n", ""},
		"not there":    {"\told\n", ""},
	}
	for name, test := range tests {
		got, err := m.hunks[0].applied(test.text)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

// Outputs of the go command, in short. Only a failure of a named test is a kill.
func TestOnlyAFailedTestIsAKill(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	tests := map[string]struct {
		output string
		err    error
		want   verdict
	}{
		"the test failed":      {"--- FAIL: TestX (0.1s)\n    --- FAIL: TestX/case (0.1s)\nFAIL\n", failed, killed},
		"the process died":     {"=== RUN   TestX\npanic: no\n\ngoroutine 1\n", failed, killed},
		"it passed":            {"--- PASS: TestX (0.1s)\n    --- PASS: TestX/case (0.1s)\nok\n", nil, survived},
		"it was not run":       {"testing: warning: no tests to run\nok\n", nil, broken},
		"only its parent ran":  {"--- PASS: TestX (0.1s)\nok\n", nil, broken},
		"it does not compile":  {"x.go:1: undefined: y\nFAIL\tx [build failed]\n", failed, broken},
		"another test failed":  {"--- PASS: TestX/case (0.1s)\n--- FAIL: TestXY (0.1s)\nFAIL\n", failed, broken},
		"goroutines leaked":    {"--- PASS: TestX/case (0.1s)\nPASS\ngoroutines leak\nFAIL\n", failed, broken},
		"there is no database": {"FAIL\tx 0.1s\n", failed, broken},
		"it waited for ever":   {"=== RUN   TestX\npanic: test timed out after 10s\n", failed, hung},
	}
	for name, test := range tests {
		if got := judge(target{pkg: "./x", tests: []string{"TestX/case"}}, test.output, test.err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	two := target{pkg: "./x", tests: []string{"TestX", "TestY"}}
	if got := judge(two, "--- FAIL: TestX (0.1s)\n--- PASS: TestY (0.1s)\nFAIL\n", failed); got != partly {
		t.Errorf("one of two tests failed: %s, want %s", got, partly)
	}
	if got := judge(two, "--- FAIL: TestX (0.1s)\n--- FAIL: TestY (0.1s)\nFAIL\n", failed); got != killed {
		t.Errorf("both tests failed: %s, want %s", got, killed)
	}
}

// A run that continues from a record skips mutants that were killed in the same trial, and tries all others again.
func TestRecordKeepsWhatWasKilledInTheSameTrial(t *testing.T) {
	t.Parallel()
	lines := "one first killed\none second survived\ntwo third killed\none fourth survived\none fourth killed " +
		"before its test ended\none fifth killed\none fifth hung\none\none sixth killed"
	ended, err := endedAs(map[string]string{"first": "one", "second": "one", "third": "one", "fourth": "one",
		"fifth": "one"}, strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	r := &record{commit: "one", ended: ended}
	for name, want := range map[string]bool{"first": true, "second": false, "third": false, "fourth": true,
		"fifth": false, "sixth": false} {
		if got := r.killed(name); got != want {
			t.Errorf("%s: killed is %t, want %t", name, got, want)
		}
	}
	page := r.page([]mutant{{name: "first", theme: "a"}, {name: "fourth", theme: "a"}, {name: "second", theme: "b"},
		{name: "sixth", theme: "b"}})
	for _, row := range []string{"Commit one,", "| a | 2 | 1 | 1 | 0 |", "| b | 2 | 0 | 0 | 2 |",
		"| all | 4 | 1 | 1 | 2 |"} {
		if !strings.Contains(page, row) {
			t.Errorf("the page has no %q:\n%s", row, page)
		}
	}
}

// A trial is the same while no file changes that it could have read.
func TestKeyOfATrial(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"saga/saga.go": "package saga\n\nimport _ \"m/wire\"\n", "docs/page.md": "a page\n", "README.md": "read me\n",
		"go.mod": "module m\n", "wire/wire.go": "package wire\n", "wire/sql/a.sql": "SELECT 1\n",
		"cmd/main.go": "package main\n", "bus/bus.go": "package bus\n",
		"internal/test/mutants/catalog/x.txt": "mutant\n",
		"saga/a_test.go": "package saga\n\nfunc TestX(t *testing.T) { help(t, 1) }\n\nfunc TestY(t *testing.T) { " +
			"help(t, 2) }\n\nfunc help(t *testing.T, n int) { other() }\n\nfunc other() {}\n\nfunc alone() {}\n",
		"saga/b_test.go": "package saga_test\n\nfunc TestPage(t *testing.T) { read(\"page.md\"); _ = fake{} " +
			"}\n\ntype fake struct{}\n\nfunc (fake) Handle() {}\n\nfunc (fake) private() {}\n",
		"bus/b_test.go": "package bus\n\nfunc TestX(t *testing.T) {}\n",
	}
	m := mutant{name: "m", target: target{pkg: "./saga", tests: []string{"TestX/case"}},
		hunks: []hunk{{"saga/saga.go", "package saga\n", "package saga // broken\n"}}}
	key := func(changed map[string]string, m mutant) string {
		all := maps.Clone(files)
		maps.Copy(all, changed)
		root := moduleWith(t, all)
		track(t, root)
		g, err := readGround(t.Context(), root, "docs/page.md")
		if err != nil {
			t.Fatal(err)
		}
		key, err := g.key(m)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	before := key(nil, m)
	with := func(name, old, now string) map[string]string {
		return map[string]string{name: strings.Replace(files[name], old, now, 1)}
	}
	for what, changed := range map[string]map[string]string{
		"the page":                      with("docs/page.md", "a", "another"),
		"a page that it does not read":  with("README.md", "read", "write"),
		"the catalogue":                 with("internal/test/mutants/catalog/x.txt", "mutant", "m"),
		"a helper of none of its tests": with("saga/a_test.go", "alone() {}", "alone() { _ = 1 }"),
		"a comment in the code":         with("saga/saga.go", "saga", "saga // more"),
		"a comment in a test":           with("saga/a_test.go", "other() {}", "other() { /* done */ }"),
		"code that it is not linked to": with("cmd/main.go", "main", "other"),
		"another test":                  with("saga/a_test.go", "help(t, 2)", "help(t, 3)"),
		"a test of another package":     with("bus/b_test.go", "{}", "{ _ = 1 }"),
	} {
		if key(changed, m) != before {
			t.Errorf("after a change of %s it is another trial", what)
		}
	}
	for what, changed := range map[string]map[string]string{
		"the code":              with("saga/saga.go", "saga\n", "saga\n\nvar x int\n"),
		"what the code imports": with("wire/wire.go", "wire\n", "wire\n\nvar x int\n"),
		"a file beside that":    with("wire/sql/a.sql", "1", "2"),
		"a directive":           with("saga/saga.go", "package", "//go:build linux\n\npackage"),
		"the module":            with("go.mod", "m\n", "m\n\ngo 1.25\n"),
		"the test":              with("saga/a_test.go", "help(t, 1)", "help(t, 4)"),
		"a helper":              with("saga/a_test.go", "int) {", "int) { _ = n;"),
		"a helper of a helper":  with("saga/a_test.go", "other() {}", "other() { _ = 1 }"),
	} {
		if key(changed, m) == before {
			t.Errorf("after a change of %s it is the same trial", what)
		}
	}
	paged := m
	paged.target.tests = []string{"TestPage"}
	before = key(nil, paged)
	if key(with("saga/b_test.go", "private() {}", "private() { _ = 1 }"), paged) != before {
		t.Error("after a change of a method that nobody can call it is another trial")
	}
	if key(with("saga/b_test.go", "Handle() {}", "Handle() { _ = 1 }"), paged) == before {
		t.Error("after a change of a method that the code may call through an interface it is the same trial")
	}
	if key(with("README.md", "read", "write"), paged) == before {
		t.Error("after a change of a page the trial of a test that reads pages is the same")
	}
	outside := m
	outside.hunks = []hunk{{"cmd/main.go", "package main\n", "package other\n"}}
	if before = key(nil, outside); key(with("bus/bus.go", "bus\n", "bus\n\nvar x int\n"), outside) == before {
		t.Error("the code that a mutant changes is not linked with its test, and another change of code is the " +
			"same trial")
	}
	before, other := key(nil, m), m
	other.hunks = []hunk{{"saga/saga.go", "package saga\n", "package saga // otherwise\n"}}
	if key(nil, other) == before {
		t.Error("another mutant has the same trial")
	}
}

// Of a failed control the output of its own tests is of interest, and not that of a hundred others.
func TestAboutKeepsTheLinesOfTheTests(t *testing.T) {
	t.Parallel()
	const output = "=== RUN   TestA\n=== CONT  TestB/x\n    b_test.go:1: of B\n=== NAME  TestA\n" +
		"    a_test.go:1: of A\n--- PASS: TestB (0.1s)\n--- FAIL: TestA (0.1s)\nFAIL\n"
	want := "    a_test.go:1: of A\n--- FAIL: TestA (0.1s)\nFAIL\n"
	if got := about(output, []string{"TestA"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The record of a whole run keeps only the lines that the next run can skip.
func TestRecordIsRewrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	const old = "k2 two killed\nk0 gone killed\nk9 one killed\n"
	for whole, want := range map[bool]string{
		true:  "k1 one killed before its test ended\nk2 two killed\n",
		false: old + "k3 three survived\nk1 one killed before its test ended\n",
	} {
		file, err := os.OpenFile(filepath.Join(t.TempDir(), "record"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(old); err != nil {
			t.Fatal(err)
		}
		r := &record{file: file, whole: whole, keys: map[string]string{"one": "k1", "two": "k2", "three": "k3"},
			ended: map[string]string{"two": "killed"}}
		if err := errors.Join(r.add("three", "survived"), r.add("one", "killed before its test ended"),
			r.close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file.Name()); err != nil || string(got) != want {
			t.Errorf("whole %v: the record is %q, want %q, %v", whole, got, want, err)
		}
	}
}
