package pg_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
)

func TestParseSchemaRefuses(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		strings.Repeat("x", 64):  "has 64 bytes, the limit is 63",
		strings.Repeat("ä", 32):  "has 64 bytes",
		"a\x00b":                 "without NUL",
		"a\xffb":                 "not UTF-8",
		"a$b":                    "dollar",
		"a\nb":                   "control character",
		"pg_edda":                "reserved",
		"information_schema":     "reserved",
		strings.Repeat("x", 999): "has 999 bytes",
	} {
		if got, err := pg.ParseSchema(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.70q: %v, %v, want an error saying %q", name, got, err, says)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, want string }{
		{"", "SELECT 1 FROM :schema.t", `SELECT 1 FROM "edda".t`},
		{"a", ":schema.t :schema.u", `"a".t "a".u`},
		{`weird"x y`, ":schema.t :'schema'", `"weird""x y".t 'weird"x y'`},
		{"we'ird", ":schema.t :'schema'", `"we'ird".t 'we''ird'`},
		{`back\slash`, ":schema.t :'schema'", `"back\slash".t E'back\\slash'`},
		{":schema", ":schema.t :'schema'", `":schema".t ':schema'`},
		{"a", "x::schema ::text :scheme", `x::schema ::text :scheme`},
		{"a", ":queue $1 '%s'", `:queue $1 '%s'`},
	} {
		schema, err := pg.ParseSchema(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := schema.Render(c.sql); got != c.want {
			t.Errorf("schema %q, %s\ngot  %s\nwant %s", c.name, c.sql, got, c.want)
		}
	}
}

func TestChannel(t *testing.T) {
	t.Parallel()
	channels := map[string]string{}
	for _, name := range []string{"", "a", "b", `weird"x y`, strings.Repeat("x", 63)} {
		schema, err := pg.ParseSchema(name)
		if err != nil {
			t.Fatal(err)
		}
		channel := schema.Channel()
		if other, twice := channels[channel]; twice || len(channel) > 63 ||
			strings.Trim(channel, "_abcdef0123456789") != "" {
			t.Errorf("schema %q has channel %q, as %q has", name, channel, other)
		}
		channels[channel] = name
	}
}

// A name that passes is kept unchanged, and rendered SQL reads back as that name: no part of it becomes SQL.
func FuzzParseSchema(f *testing.F) {
	for _, seed := range []string{"", "edda", `weird"x y`, `we'ird`, `\`, `'"\'"`, "$$", "a\nb", ":schema", "::schema",
		"ä", "\x00", "pg_x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		schema, err := pg.ParseSchema(name)
		if err != nil {
			return
		}
		if name == "" {
			name = pg.DefaultSchema
		}
		if schema.Name() != name || len(name) > 63 || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, unicode.IsControl) {
			t.Fatalf("%q became the schema %q", name, schema.Name())
		}
		if got := unquote(schema.Render(":schema"), `"`); got != name {
			t.Errorf("identifier %s reads back as %q", schema.Render(":schema"), got)
		}
		text := schema.Render(":'schema'")
		if rest, escaped := strings.CutPrefix(text, "E"); escaped {
			text = strings.ReplaceAll(rest, `\\`, `\`)
		}
		if got := unquote(text, "'"); got != name {
			t.Errorf("literal %s reads back as %q", schema.Render(":'schema'"), got)
		}
	})
}

// unquote reads text in quotes, where a quote within is doubled; for any other text it returns a remark.
func unquote(text, quote string) string {
	inner, ok := strings.CutPrefix(text, quote)
	inner, end := strings.CutSuffix(inner, quote)
	undoubled := strings.ReplaceAll(inner, quote+quote, "")
	if !ok || !end || strings.Contains(undoubled, quote) {
		return "not one quoted text: " + text
	}
	return strings.ReplaceAll(inner, quote+quote, quote)
}
