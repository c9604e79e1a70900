package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// moduleWith writes a module into a temporary directory.
func moduleWith(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		place := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// track adds all files of a directory to a new repository of git.
func track(t *testing.T, root string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// goBreaks has functions, and all changes of each. A change is its kind, and the line that it makes.
var goBreaks = map[string]struct {
	code string
	want []string
}{
	"a condition": {"func f(a, b bool) {\nif a && !b {\n_ = 'x'\n}\n}",
		[]string{"negate if !(a) && !b {", "negate if a && b {", "drop "}},
	"a loop": {"func f(n int) (sum int) {\nfor sum < n {\nsum++\n}\nreturn sum\n}",
		[]string{"negate for !(sum < n) {", "shift for sum <= n {", "drop "}},
	"a switch": {"func f(n int) bool {\nswitch {\ncase n > 3:\nreturn true\n}\nreturn n == 0\n}",
		[]string{"negate case !(n > 3):", "shift case n >= 3:", "constant case n > 4:", "constant return false",
			"negate return !(n == 0)", "constant return n == 1"}},
	"an error": {"func f(err error) error {\nif err != nil {\nreturn err\n}\nreturn nil\n}",
		[]string{"negate if !(err != nil) {", "error if (err != nil && false) {",
			"error return func(error) error { return nil }(err)"}},
	"statements": {"func f(c chan int, x int) {\nc <- x\ngo g()\ndefer g()\nx = 'x'\ny := x\n_ = y\nreturn\n}\n" +
		"func g() {}",
		[]string{"drop ", "drop ", "drop ", "drop ", "drop ", "drop "}},
	"a timer": {"func f(t *time.Timer) {\ndefer t.Stop()\nt.Reset(5 * time.Second)\n}",
		[]string{"timer ", "constant t.Reset(500 * time.Second)"}},
	"a slice": {"func f(all []int, n int) []int {\nreturn all[n:n+n]\n}",
		[]string{"shift return all[(n)+1:n+n]", "shift return all[n:(n+n)-1]"}},
	"constants": {"const most = 100\nvar wait = 2 * time.Minute\nvar mode = 0o600",
		[]string{"constant const most = 200", "constant var wait = 200 * time.Minute"}},
	"arguments": {"func f(a, b string) bool {\nreturn strings.HasPrefix(a, b) || strings.EqualFold(a, b)\n}",
		[]string{"swap return strings.HasPrefix(b, a) || strings.EqualFold(a, b)",
			"negate return !(strings.HasPrefix(a, b)) || strings.EqualFold(a, b)",
			"negate return strings.HasPrefix(a, b) || !(strings.EqualFold(a, b))"}},
	"texts": {"type t int\nfunc (t) String() string {\ng(1)\nreturn \"\"\n}\nfunc g(n int) {\n" +
		"slog.Info(\"\", \"n\", 1)\npanic(n + 1)\n}", nil},
	"allocations": {"func f() []int {\nvar a [4]int\nreturn append(make([]int, 0, 8), a[:]...)\n}", nil},
}

func TestEveryKindOfChangeIsFound(t *testing.T) {
	t.Parallel()
	files := map[string]string{"go.mod": "module m\n\ngo 1.24\n"}
	dirs := map[string]string{}
	for name, b := range goBreaks {
		dir := strings.ReplaceAll(name, " ", "_")
		dirs[dir] = name
		text := "package p\n\n"
		for _, pkg := range []string{"log/slog", "strings", "time"} {
			if strings.Contains(b.code, filepath.Base(pkg)+".") {
				text += "import \"" + pkg + "\"\n\n"
			}
		}
		files[dir+"/p.go"] = text + b.code + "\n"
	}
	c, err := loadProduct(t.Context(), moduleWith(t, files))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.packages {
		var got []string
		for _, e := range goEdits(p, p.sources[0]) {
			got = append(got, e.op+" "+changedLine(e, p.sources[0].text))
		}
		want := slices.Sorted(slices.Values(goBreaks[dirs[p.dir]].want))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", p.dir, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func changedLine(e edit, text string) string {
	m := e.mutant(text)
	lines := slices.Collect(strings.Lines(m.hunks[0].now))
	return strings.TrimSuffix(lines[len(lines)-1], "\n")
}

func TestEveryKindOfChangeOfSQLIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sql  string
		want []string
	}{
		"conjuncts": {"SELECT 1 FROM a JOIN b ON a.x = b.x\nWHERE a.y BETWEEN 1 AND $1 AND (a.z OR b.z) GROUP BY 1",
			[]string{"conjunct SELECT 1 FROM a JOIN b ON (a.x = b.x OR true)",
				"conjunct WHERE (a.y BETWEEN 1 AND $1 OR true) AND (a.z OR b.z) GROUP BY 1",
				"conjunct WHERE a.y BETWEEN 1 AND $1 AND ((a.z OR b.z) OR true) GROUP BY 1"}},
		"locks": {"SELECT 1 FROM a FOR NO KEY UPDATE OF a, b SKIP LOCKED",
			[]string{"lock SELECT 1 FROM a ", "skip SELECT 1 FROM a FOR NO KEY UPDATE OF a, b "}},
		"a loop": {"FOR r IN SELECT 1 LOOP", nil},
		"order": {"SELECT max(x ORDER BY y) FROM a ORDER BY 1, b DESC LIMIT 2", []string{
			"order SELECT max(x ) FROM a ORDER BY 1, b DESC LIMIT 2",
			"order SELECT max(x ORDER BY y) FROM a  LIMIT 2"}},
		"percentiles": {"SELECT percentile_cont(1) WITHIN GROUP (ORDER BY x)", nil},
		"text":        {"SELECT 'WHERE a AND b' -- WHERE c\n", nil},
		"conflicts":   {"INSERT INTO a VALUES (1) ON CONFLICT (x) DO NOTHING", nil},
		"cases":       {"SELECT 1 WHERE CASE WHEN a THEN b ELSE c END", nil},
	} {
		text := "-- name: s\n" + test.sql + "\n"
		var got []string
		for _, s := range statements("s.sql", text) {
			for _, e := range sqlEdits(&goPackage{}, s) {
				got = append(got, e.op+" "+changedLine(e, text))
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// grove is a module with two packages, and a test that fails.
var grove = map[string]string{
	"go.mod": "module m\n\ngo 1.24\n",
	"q/q.go": `package q

const Most = 3

func More(n int) int {
	if n < Most {
		return n + 1
	}
	return n
}

func Unused(n *int) {
	*n = 1
}
`,
	"q/q_test.go": `package q

import "testing"

func TestMore(t *testing.T) {
	if More(1) != 2 {
		t.Error(1)
	}
}
`,
	"p/p.go": `package p

import "m/q"

func Up(n int) int {
	return q.More(q.More(n))
}
`,
	"p/p_test.go": `package p

import "testing"

func TestUp(t *testing.T) {
	if Up(2) != 3 {
		t.Error(1)
	}
}

func TestRed(t *testing.T) {
	t.Error(Up(1))
}
`,
}

// All mutants of a small module are drawn and tried: with the tests of their package, and then with others.
func TestRandomMutantsAreTried(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := moduleWith(t, grove)
	c, err := loadProduct(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := c.draw(4, "a seed", regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.draw(4, "a seed", regexp.MustCompile(""))
	if err != nil || !slices.EqualFunc(chosen, again, func(a, b drawn) bool { return a.name == b.name }) {
		t.Errorf("a second draw differs: %v", err)
	}
	if _, err := c.draw(100, "a seed", regexp.MustCompile("")); err == nil {
		t.Error("a draw of more mutants than lines is no error")
	}
	l := &laboratory{root: root, dir: t.TempDir(), out: io.Discard}
	bag := &bag{settings: settings{jobs: 2, out: io.Discard}, record: &record{ended: map[string]string{}}, commit: "-"}
	track(t, root)
	if err := l.stages(t.Context(), c, bag, chosen); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Most constant": "killed - ./p", "More negate": "killed - own",
		"More shift": "killed - ./p", "More constant": "killed - own", "Unused drop": "survived - -",
		"Unused constant": "survived - -"}
	for _, d := range chosen {
		what := d.edit.function + " " + d.edit.op
		if got := bag.record.ended[d.name]; !strings.HasPrefix(got, want[what]+" q/q.go ") {
			t.Errorf("%s: %s, want %s", what, got, want[what])
		}
	}
}

func TestArgumentsHaveAPlace(t *testing.T) {
	t.Parallel()
	all, err := arguments("# a remark\n\ndrop-1 a.go f: it is dropped: twice\n")
	if err != nil || all["drop-1"] != "it is dropped: twice" || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	for _, text := range []string{"drop-1: no place\n", "drop-1 a.go f\n"} {
		if _, err := arguments(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
	if _, err := arguments(argumentsText); err != nil {
		t.Error(err)
	}
}

func TestRandomPageCountsTheLastResultOfEachDraw(t *testing.T) {
	t.Parallel()
	const record = "s1 drop-1 survived c own bus/a.go f\ns1 drop-1 killed c own bus/a.go f\n" +
		"s1 drop-2 killed c ./bus internal/store/lease/a.go f\ns2 drop-1 survived c - bus/a.go f\n" +
		"s2 drop-3 survived c - bus/a.go f\ns2 drop-4 hung c own bus/a.go f\n"
	page, err := randomPage(strings.NewReader(record), map[string]string{"drop-3": "it is the same"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| s1 | 2 | 2 | 100 % | 50 % | 0 | 0 | 0 |\n| s2 | 3 | 0 | 0 % | – | 1 | 1 | 1 |\n",
		"| bus | 4 | 1 | 50 % | 100 % | 1 | 1 | 1 |\n| internal/store/lease | 1 | 1 | 100 % | 0 % | 0 | 0 | 0 |\n",
		"| all | 5 | 2 | 66 % | 50 % | 1 | 1 | 1 |\n| elsewhere | 4 | 1 | 50 % | 100 % | 1 | 1 | 1 |\n" +
			"| engine, stores, scheduler | 1 | 1 | 100 % | 0 % | 0 | 0 | 0 |\n",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("no %q in\n%s", row, page)
		}
	}
	if got := randomPart("# Mutants\n" + page); got != page {
		t.Errorf("the part of the page is %q", got)
	}
}
