package pg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edda-go/edda/internal/base/pg"
)

func edda(t testing.TB) pg.Schema {
	t.Helper()
	schema, err := pg.ParseSchema("")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestLoad(t *testing.T) {
	t.Parallel()
	got := pg.Load(`
-- What the file is for.

-- name: one
-- Why it has its shape.
SELECT 1 FROM :schema.t;

-- name: two
SELECT x::text,
       'a;b' -- name: not a block
FROM :schema.t
`, edda(t))
	want := pg.Statements{
		"one": "-- name: one\n-- Why it has its shape.\nSELECT 1 FROM \"edda\".t",
		"two": "-- name: two\nSELECT x::text,\n       'a;b' -- name: not a block\nFROM \"edda\".t",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                     `a block named "" is empty`,
		"SELECT 1":             "text before the first",
		"SELECT 1\n-- name: a": "text before the first",
		"-- name: \nSELECT 1":  `a block named "" is empty`,
		"-- name: a\n-- only":  `a block named "a" is empty`,
		"-- name: a":           `a block named "a" is empty`,
		"-- name: a\nSELECT 1\n-- name: a\nSELECT 2": `two blocks are named "a"`,
	} {
		if got, refusal := loaded(text, edda(t)); !strings.Contains(refusal, says) {
			t.Errorf("%q: %v, %q, want a panic saying %q", text, got, refusal, says)
		}
	}
}

// loaded returns the statements of text, or the message of Load's panic.
func loaded(text string, schema pg.Schema) (_ pg.Statements, refusal string) {
	defer func() {
		if reason := recover(); reason != nil {
			refusal = fmt.Sprint(reason)
		}
	}()
	return pg.Load(text, schema), ""
}

func TestGetPanicsForANameThatIsNotThere(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got != `no sql statement is named "x"` {
			t.Errorf("panic %v", got)
		}
	}()
	pg.Statements{}.Get("x")
}

// A loaded statement has a name on its first line, once, and a body.
func FuzzLoad(f *testing.F) {
	f.Add("-- name: a\nSELECT 1;\n-- name: b\nSELECT 2")
	f.Add("-- note\n-- name: a\n-- name: b\nSELECT 2")
	f.Add("-- name: a\r\nSELECT 1")
	f.Add("-- name: 0\n;")
	schema := edda(f)
	f.Fuzz(func(t *testing.T, text string) {
		statements, _ := loaded(text, schema)
		for name, sql := range statements {
			first, body, _ := strings.Cut(sql, "\n")
			if name == "" || first != "-- name: "+name || strings.TrimSpace(body) == "" {
				t.Errorf("%q has %q as %q", text, sql, name)
			}
		}
	})
}
