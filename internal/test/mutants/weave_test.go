package main

import (
	"io"
	"strings"
	"testing"
)

const forestCode = `package p

import (
	"embed"
	"errors"

	"m/q"
)

//go:embed a.sql
var statement string

//go:embed sql/*.sql
var scripts embed.FS

const limit = 3

type tree struct{ leaves int }

func (t tree) grow(_ string, n int, more ...int) (sum int, err error) {
	defer func() {
		if err != nil {
			sum = -1
		}
	}()
	n, err = n+len(more), errors.Join(err)
	return t.leaves + n, nil
}

func (t *tree) cut() {
	t.leaves = 0
}

func count[T any](all []T) (n int) {
again:
	if n < len(all) && n < limit {
		n++
		goto again
	}
	return n
}

func guarded() (text string) {
	defer rescue(&text)
	panic("wood")
}

func rescue(text *string) {
	if cause := recover(); cause != nil {
		*text = cause.(string)
	}
}

func script() string {
	text, _ := scripts.ReadFile("sql/b.sql")
	return statement + string(text)
}

func twice() int { return q.Two() * 2 }
`

const forestTests = `package p

import "testing"

func want[T comparable](t *testing.T, got, want T) {
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestGrow(t *testing.T) {
	sum, _ := tree{2}.grow("", 3, 4, 5)
	want(t, sum, 7)
}

func TestCut(t *testing.T) {
	f := tree{2}
	f.cut()
	want(t, f.leaves, 0)
}

func TestCount(t *testing.T) { want(t, count([]int{1, 2, 3, 4}), 3) }

func TestGuarded(t *testing.T) { want(t, guarded(), "wood") }

func TestScript(t *testing.T) { want(t, script(), "SELECT 1\nFROM a\nSELECT 2\n") }

func TestTwice(t *testing.T) { want(t, twice(), 4) }
`

// forest has mutants of a module. Mutants with alone cannot be compiled together with others.
var forest = map[string]struct {
	test, change string
	alone        bool
	ends         verdict
}{
	"result": {"TestGrow", "file p/p.go\n-\treturn t.leaves + n, nil\n+\treturn n, nil\n", false, killed},
	"same-body": {"TestGrow", "file p/p.go\n-\tn, err = n+len(more), errors.Join(err)\n" +
		"+\tn, err = n, errors.Join(err)\n", false, killed},
	"new-scope": {"TestGrow", "file p/p.go\n-\tn, err = n+len(more), errors.Join(err)\n" +
		"+\tn, err, rest := 1, errors.Join(err), more\n+\t_ = rest\n", false, killed},
	"closure":    {"TestGrow", "file p/p.go\n-\t\tif err != nil {\n+\t\tif err == nil {\n", false, killed},
	"no-result":  {"TestCut", "file p/p.go\n-\tt.leaves = 0\n", false, killed},
	"label":      {"TestCount", "file p/p.go\n-\t\tn++\n+\t\tn += 2\n", false, killed},
	"constant":   {"TestCount", "file p/p.go\n-const limit = 3\n+const limit = 2\n", true, killed},
	"recovers":   {"TestGuarded", "file p/p.go\n-\t\t*text = cause.(string)\n", true, killed},
	"statement":  {"TestScript", "file p/a.sql\n-FROM a\n+FROM b\n", false, killed},
	"script":     {"TestScript", "file p/sql/b.sql\n-SELECT 2\n+SELECT 3\n", false, killed},
	"two-files":  {"TestScript", "file p/sql/b.sql\n-SELECT 2\n+\nfile p/p.go\n-\tt.leaves = 0\n", false, killed},
	"elsewhere":  {"TestTwice", "file q/q.go\n-\treturn 2\n+\treturn 3\n", false, killed},
	"of-no-test": {"TestTwice", "file p/p.go\n-\tt.leaves = 0\n", false, survived},
	"more-imports": {"TestCut", "file p/p.go\n-\t\"errors\"\n+\t\"errors\"\n+\t\"math\"\n" +
		"file p/p.go\n-\tt.leaves = 0\n+\tt.leaves = math.MaxInt\n", false, killed},
	"an-import-too-many": {"TestTwice", "file p/p.go\n-func twice() int { return q.Two() * 2 }\n" +
		"+func twice() int { return 2 }\n", true, broken},
	"a-name-too-many": {"TestTwice", "file q/q.go\n-\treturn 2\n+\tn := 2\n+\treturn 3\n", true, broken},
	"no-return":       {"TestTwice", "file q/q.go\n-\treturn 2\n", true, broken},
}

// Mutants that are compiled together are on in a process of their own, and a fault of one does not disturb others.
func TestMutantsAreCompiledTogetherAndTriedApart(t *testing.T) {
	t.Parallel()
	root := moduleWith(t, map[string]string{
		"go.mod": "module m\n\ngo 1.24\n", "p/p.go": forestCode, "p/p_test.go": forestTests,
		"p/a.sql": "SELECT 1\nFROM a\n", "p/sql/b.sql": "SELECT 2\n",
		"q/q.go": "package q\n\nfunc Two() int {\n\treturn 2\n}\n",
	})
	l := &laboratory{root: root, dir: t.TempDir(), out: io.Discard}
	var catalog strings.Builder
	for name, m := range forest {
		catalog.WriteString("mutant " + name + "\nguards g\ntest ./p " + m.test + "\n" + m.change)
	}
	mutants, err := parse("x", catalog.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.compile(t.Context(), mutants); err != nil {
		t.Fatal(err)
	}
	if err := l.control(t.Context(), 1, mutants); err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		want := forest[m.name]
		if l.woven[m.name] == want.alone {
			t.Errorf("%s: it is compiled alone: %t, want %t", m.name, want.alone, !want.alone)
		}
		if l.woven[m.name] { // a trial alone would end in the same way
			output, failure := l.start(t.Context(), m.target, testTime, onVariable+"="+m.name)
			if got := judge(m.target, output, failure); got != want.ends {
				t.Errorf("%s: %s, want %s\n%s", m.name, got, want.ends, output)
			}
		}
		if !l.woven[m.name] || want.ends != killed {
			if got, output, err := l.try(t.Context(), m); err != nil || got != want.ends {
				t.Errorf("%s by itself: %s, %v, want %s\n%s", m.name, got, err, want.ends, output)
			}
		}
	}
}
