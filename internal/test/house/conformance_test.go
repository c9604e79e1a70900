package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requirements are the sources of requirements, with the number of rows of each. Every row needs one line on the
// page.
var requirements = []struct {
	source string
	rows   int
}{
	{"S0", 58}, // a scheduler on several servers
	{"S1", 58}, // the same, a year later
	{"S2", 34}, // tokens by row locking
	{"S3", 76}, // one reconciler at a time, by lease
	{"S4", 66}, // saga concurrency
	{"S5", 39}, // security, as far as it is about pages
}

const (
	conformancePage = "docs/internals/conformance.md"
	catalogOfBreaks = "internal/test/mutants/catalog/*.txt" // of deliberate faults, see internal/test/mutants
)

// kindsOfReason begin the text of a row without a test. The page explains them.
var kindsOfReason = []string{"Otherwise: ", "Advice: ", "Not ours: ", "Open: "}

// breakage is a paragraph of the catalog: the rows that a mutant breaks, and the tests that fail then, in the
// notation of an answer.
type breakage struct {
	name        string
	rows, tests []string
}

// answer is a line of the page: the requirement of a row, how it is met, and the tests that show it.
type answer struct {
	row, asks, how string
	tests          []string // "bus TestA": a package and a test of it, which may name a subtest
}

var (
	answerLine = regexp.MustCompile(`^\|\s*(S\d+-\d+)\s*\|`)
	testsCell  = regexp.MustCompile("^`[^`]+`(, `[^`]+`)*$")
	testWord   = regexp.MustCompile(`^(Test|Example|Fuzz)(\w*)(/\S+)?$`)
)

// TestConformance checks that every requirement has tests that show it. It fails for a row without a test or a
// reason, for a test that does not exist, and for a row without a mutant that makes a test of it fail.
func TestConformance(t *testing.T) {
	t.Parallel()
	answers, faults := readAnswers(read(t, conformancePage))
	for _, fault := range faults {
		t.Errorf("%s: %s", conformancePage, fault)
	}
	defined := remembering(testsIn) // many rows name tests of one package
	breaks := readBreaks(t)
	for _, fault := range strangeRows(breaks, answers) {
		t.Errorf("%s: %s", catalogOfBreaks, fault)
	}
	shown := 0
	for _, r := range requirements {
		for n := range r.rows {
			row := fmt.Sprintf("%s-%d", r.source, n+1)
			t.Run(row, func(t *testing.T) {
				a, ok := answers[row]
				if !ok {
					t.Fatalf("%s has no line for it", conformancePage)
				}
				for _, fault := range append(a.faults(defined), a.unbroken(breaks)...) {
					t.Errorf("%s: %s", conformancePage, fault)
				}
				if len(a.tests) > 0 {
					shown++
				}
				t.Logf("%s\n%s\n%s", a.asks, a.how, strings.Join(a.tests, "\n"))
			})
			delete(answers, row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(answers)) {
		t.Errorf("%s answers %s, and there is no such requirement", conformancePage, row)
	}
	t.Logf("%d rows are shown by tests", shown)
}

// readAnswers reads the lines of the tables that begin with a row.
func readAnswers(page string) (answers map[string]answer, faults []string) {
	answers = map[string]answer{}
	for line := range strings.Lines(page) {
		m := answerLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		row := m[1]
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			faults = append(faults, fmt.Sprintf("the line of %s has %d columns, want 4: row, asks, how, tests", row,
				len(cells)))
			continue
		}
		for n, cell := range cells {
			if cells[n] = strings.TrimSpace(cell); cells[n] == "–" {
				cells[n] = ""
			}
		}
		if _, ok := answers[row]; ok {
			faults = append(faults, row+" has two lines")
		}
		if cells[3] != "" && !testsCell.MatchString(cells[3]) {
			faults = append(faults, fmt.Sprintf("the tests of %s are %q, want `package TestName`, and commas between",
				row, cells[3]))
		}
		answers[row] = answer{row, cells[1], cells[2], testsOf(cells[3])}
	}
	return answers, faults
}

// testsOf returns the tests of a cell, each with its package, which the cell names once for several.
func testsOf(cell string) (tests []string) {
	for span := range strings.SplitSeq(strings.ReplaceAll(cell, "`", ""), ", ") {
		words := strings.Fields(span)
		for n := range words {
			if n > 0 {
				tests = append(tests, words[0]+" "+words[n])
			}
		}
		if len(words) == 1 {
			tests = append(tests, words[0])
		}
	}
	return tests
}

// faults returns the faults of an answer. defined returns the tests of a package.
func (a answer) faults(defined func(folder string) (map[string]bool, error)) (faults []string) {
	if a.asks == "" {
		faults = append(faults, a.row+" does not say what it asks")
	}
	if reason := slices.ContainsFunc(kindsOfReason, func(kind string) bool {
		return strings.HasPrefix(a.how, kind) && len(strings.Fields(a.how)) > 3
	}); len(a.tests) == 0 && !reason {
		faults = append(faults, fmt.Sprintf("%s has no test, and no reason that begins with one of %q", a.row,
			kindsOfReason))
	}
	for _, test := range a.tests {
		folder, name, _ := strings.Cut(test, " ")
		m := testWord.FindStringSubmatch(name)
		if m == nil {
			faults = append(faults, fmt.Sprintf("%s names %q, want a package and a test", a.row, test))
			continue
		}
		if tests, err := defined(folder); err != nil {
			faults = append(faults, fmt.Sprintf("%s names %q: %v", a.row, test, err))
		} else if !tests[m[1]+m[2]] {
			faults = append(faults, fmt.Sprintf("%s names %q, and package %s has no such test", a.row, test, folder))
		} else if _, subtest, ok := strings.Cut(name, "/"); ok && !tests[subtest] {
			faults = append(faults, fmt.Sprintf("%s names %q, and nothing in package %s is called %q", a.row, test,
				folder, subtest))
		}
	}
	return faults
}

// unbroken returns a fault if no mutant breaks the row and names a test of it. Tests of this package read pages,
// which a mutant cannot change.
func (a answer) unbroken(breaks []breakage) []string {
	if !slices.ContainsFunc(a.tests, func(test string) bool { return !strings.HasPrefix(test, thisPackage+" ") }) {
		return nil
	}
	for _, b := range breaks {
		if slices.Contains(b.rows, a.row) && slices.ContainsFunc(b.tests, a.names) {
			return nil
		}
	}
	return []string{fmt.Sprintf("no mutant breaks %s and names one of its tests", a.row)}
}

// names reports whether the row names a mutant's test, or a case of it, or the test that it is a case of.
func (a answer) names(test string) bool {
	return slices.ContainsFunc(a.tests, func(mine string) bool {
		return mine == test || strings.HasPrefix(mine, test+"/") || strings.HasPrefix(test, mine+"/")
	})
}

// readBreaks reads the parts of the catalog that the conformance page needs.
func readBreaks(t *testing.T) (breaks []breakage) {
	t.Helper()
	paths, err := filepath.Glob(catalogOfBreaks)
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no catalog: %v", err)
	}
	for _, path := range paths {
		for line := range strings.Lines(read(t, path)) {
			words := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "mutant "):
				breaks = append(breaks, breakage{name: words[1]})
			case strings.HasPrefix(line, "rows "):
				breaks[len(breaks)-1].rows = words[1:]
			case strings.HasPrefix(line, "test "):
				for _, test := range words[2:] {
					breaks[len(breaks)-1].tests = append(breaks[len(breaks)-1].tests,
						strings.TrimPrefix(words[1], "./")+" "+test)
				}
			}
		}
	}
	return breaks
}

// strangeRows returns rows that a mutant names and that have no test on the page.
func strangeRows(breaks []breakage, answers map[string]answer) (faults []string) {
	for _, b := range breaks {
		for _, row := range b.rows {
			if len(answers[row].tests) == 0 {
				faults = append(faults, fmt.Sprintf("mutant %s says that it breaks %s, and %s names no test for that",
					b.name, row, conformancePage))
			}
		}
	}
	return faults
}

// testsIn returns the tests of the package in folder by its files; "." is the root. The result includes all texts and
// identifiers that may be the name of a case.
func testsIn(folder string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("there is no package %s with tests", folder)
	}
	tests := map[string]bool{}
	for _, path := range paths {
		file, e := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if e != nil {
			return nil, e
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if !strings.HasPrefix(n.Name, "Test") {
					tests[n.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING &&
					!strings.HasPrefix(text, "Test") {
					tests[strings.ReplaceAll(text, " ", "_")] = true
				}
			}
			return true
		})
	}
	return tests, err
}

// remembering reads each folder once.
func remembering(read func(folder string) (map[string]bool, error)) func(folder string) (map[string]bool, error) {
	known := map[string]map[string]bool{}
	return func(folder string) (map[string]bool, error) {
		if tests, ok := known[folder]; ok {
			return tests, nil
		}
		tests, err := read(folder)
		if err == nil {
			known[folder] = tests
		}
		return tests, err
	}
}

// The check itself must report these faults.
func TestConformanceFaultsAreSeen(t *testing.T) {
	t.Parallel()
	defined := func(folder string) (map[string]bool, error) {
		if folder != "bus" {
			return nil, fmt.Errorf("no package %s", folder)
		}
		return map[string]bool{"TestA": true, "ExampleB": true, "a_case": true}, nil
	}
	for line, want := range map[string]string{
		"| S2-1 | asks | how | `bus TestA` |":                            "",
		"| S2-1 | asks | – | `bus TestA ExampleB`, `bus TestA/a_case` |": "",
		"| S2-1 | asks | Not ours: it is about another product. | – |":   "",
		"| S2-1 | – | how | `bus TestA` |":                               "does not say what it asks",
		"| S2-1 | asks | – | – |":                                        "no test, and no reason",
		"| S2-1 | asks | how it is | – |":                                "no test, and no reason",
		"| S2-1 | asks | Otherwise: | – |":                               "no test, and no reason",
		"| S2-1 | asks | how |":                                          "has 3 columns",
		"| S2-1 | asks | how | bus TestA |":                              "commas between",

		"| S2-1 | asks | how | `bus TestA`\n| S2-1 | asks | how | `bus` |": "two lines",

		"| S2-1 | asks | how | `TestA` |":             "want a package and a test",
		"| S2-1 | asks | how | `bus testA` |":         "want a package and a test",
		"| S2-1 | asks | how | `bus TestA TestC` |":   `"bus TestC", and package bus has no such test`,
		"| S2-1 | asks | how | `boat TestA` |":        "no package boat",
		"| S2-1 | asks | how | `bus TestA/no_case` |": `nothing in package bus is called "no_case"`,
	} {
		answers, faults := readAnswers(line)
		for _, a := range answers {
			faults = append(faults, a.faults(defined)...)
		}
		if got := strings.Join(faults, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s\nfaults: %q, want %q", line, got, want)
		}
	}
	shown := answer{row: "S2-1", tests: []string{"bus TestA/a_case"}}
	for _, b := range []breakage{{}, {rows: []string{"S2-1"}}, {rows: []string{"S2-2"}, tests: shown.tests},
		{rows: []string{"S2-1"}, tests: []string{"bus TestA/another"}}} {
		if shown.unbroken([]breakage{b}) == nil {
			t.Errorf("%+v was taken for a break of S2-1", b)
		}
		if named := strangeRows([]breakage{b}, nil); len(named) != len(b.rows) {
			t.Errorf("rows that nobody answers: %q", named)
		}
	}
	for _, test := range []string{"bus TestA", "bus TestA/a_case"} {
		if faults := shown.unbroken([]breakage{{rows: []string{"S2-1"}, tests: []string{test}}}); faults != nil {
			t.Errorf("%s: %q", test, faults)
		}
	}
	if tests, err := testsIn(thisPackage); err != nil || !tests["TestConformanceFaultsAreSeen"] {
		t.Errorf("the tests of the root: %v %v", tests, err)
	}
	if _, err := testsIn("docs"); err == nil {
		t.Error("a folder without tests was taken for a package")
	}
}
