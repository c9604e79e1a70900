package pg_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edda-go/edda/internal/pg"
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
	got, err := pg.Load(`
-- What the file is for.

-- name: one
-- Why it has its shape.
SELECT 1 FROM :schema.t;

-- name: two
SELECT x::text,
       'a;b' -- name: not a block
FROM :schema.t
`, edda(t))
	if err != nil {
		t.Fatal(err)
	}
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
		if got, err := pg.Load(text, edda(t)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want an error saying %q", text, got, err, says)
		}
	}
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

// What is loaded has a name on its first line, once, and a body.
func FuzzLoad(f *testing.F) {
	f.Add("-- name: a\nSELECT 1;\n-- name: b\nSELECT 2")
	f.Add("-- note\n-- name: a\n-- name: b\nSELECT 2")
	f.Add("-- name: a\r\nSELECT 1")
	f.Add("-- name: 0\n;")
	schema := edda(f)
	f.Fuzz(func(t *testing.T, text string) {
		statements, err := pg.Load(text, schema)
		if err != nil {
			return
		}
		for name, sql := range statements {
			first, body, _ := strings.Cut(sql, "\n")
			if name == "" || first != "-- name: "+name || strings.TrimSpace(body) == "" {
				t.Errorf("%q has %q as %q", text, sql, name)
			}
		}
	})
}
