package pg

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// DefaultSchema is the schema of the tables if an Options names no other.
const DefaultSchema = "edda"

// maxIdentifier is Postgres' NAMEDATALEN - 1: a longer name is cut with a notice, so that two names could become the
// same.
const maxIdentifier = 63

// Schema is the name of a schema, checked and ready to be written into SQL. The zero Schema is invalid.
type Schema struct{ name string }

// ParseSchema checks name; "" is DefaultSchema. Any other text is allowed, including quotes and spaces, if Postgres
// keeps it unchanged and it cannot end the text around it: bodies of functions are quoted by dollars, and scripts are
// read by lines.
func ParseSchema(name string) (Schema, error) {
	if name == "" {
		name = DefaultSchema
	}
	switch {
	case len(name) > maxIdentifier:
		return Schema{}, fmt.Errorf("schema name has %d bytes, the limit is %d", len(name), maxIdentifier)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return Schema{}, fmt.Errorf("schema name is not UTF-8 text without NUL")
	case strings.ContainsRune(name, '$') || strings.ContainsFunc(name, unicode.IsControl):
		return Schema{}, fmt.Errorf("schema name %q has a dollar or a control character in it", name)
	case strings.HasPrefix(name, "pg_") || name == "information_schema":
		return Schema{}, fmt.Errorf("schema name %q is reserved by Postgres", name)
	}
	return Schema{name: name}, nil
}

// Name returns the name without quotes.
func (s Schema) Name() string { return s.name }

// Render inserts the schema into SQL text: :schema becomes the quoted identifier and :'schema' the quoted literal, as
// in psql, so that every file of statements can also be run by hand.
func (s Schema) Render(sql string) string { return s.RenderWith(sql) }

// RenderWith is Render for text with further marks; marks lists each one with its replacement. Replacements are not
// searched for marks.
func (s Schema) RenderWith(sql string, marks ...string) string {
	return strings.NewReplacer(append([]string{
		":'schema'", Literal(s.name),
		"::schema", "::schema", // a cast to a type of that name is left alone
		":schema", pgx.Identifier{s.name}.Sanitize(),
	}, marks...)...).Replace(sql)
}

// Literal quotes text like Postgres' quote_literal: if it contains a backslash, the E form means the same under every
// setting of standard_conforming_strings.
func Literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// Channel returns the NOTIFY channel of this schema. It is made from a hash, because a whole database shares its
// channels and a schema name may not be a valid channel.
func (s Schema) Channel() string {
	h := fnv.New64a()
	h.Write([]byte(s.name))
	return "edda_" + strconv.FormatUint(h.Sum64(), 16)
}
