package migrations_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/migrations"
)

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	all := migrations.All()
	for i, m := range all {
		if m.Version != int64(i+1) {
			t.Errorf("migration %d is named %d_%s", i+1, m.Version, m.Name)
		}
	}
	if len(all) != migrations.Version {
		t.Errorf("there are %d files, and Version is %d", len(all), migrations.Version)
	}
}

// unqualified finds a table or function of Edda that is named without its schema.
var unqualified = regexp.MustCompile(`(?i)\b(?:CREATE (?:TABLE|FUNCTION)|INSERT ` +
	`INTO|UPDATE|FROM|JOIN|REFERENCES|PERFORM)\s+[a-z_]+[ (]`)

var allowedNames = regexp.MustCompile(`(?i)^(FROM (json_each|json_to_recordset|ROWS|clock_timestamp|unnest|` +
	`held|ending|said)|UPDATE (SKIP|OF)|PERFORM (FROM|pg_notify|pg_advisory_xact_lock(_shared)?))`)

// No statement relies on a search_path: it belongs to the session, and a pooler may hand out a session with a different
// one.
func TestMigrationsNameTheirSchema(t *testing.T) {
	t.Parallel()
	for _, m := range migrations.All() {
		for line := range strings.Lines(m.Text) {
			code, _, _ := strings.Cut(line, "--")
			for _, found := range unqualified.FindAllString(code, -1) {
				if !allowedNames.MatchString(found) {
					t.Errorf("%05d_%s.sql: %q has no :schema in\n%s", m.Version, m.Name, found, line)
				}
			}
		}
	}
}

// escaped finds a plain literal with a backslash in it.
var escaped = regexp.MustCompile(`(?:^|[^E'])'[^']*\\`)

// The body of a function is parsed in the session of its caller, where standard_conforming_strings may be off.
func TestLiteralsMeanTheSameInEverySession(t *testing.T) {
	t.Parallel()
	for _, m := range migrations.All() {
		for line := range strings.Lines(m.Text) {
			if code, _, _ := strings.Cut(line, "--"); escaped.MatchString(code) {
				t.Errorf("%05d_%s.sql: a literal with a backslash needs an E\n%s", m.Version, m.Name, line)
			}
		}
	}
}

// A role that may insert could bypass the function send, and make every worker read gigabytes.
func TestQueueTakesNoRowOfAnySize(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	const within = `convert_to(repeat('x', 1000), 'UTF8')`
	for constraint, values := range map[string]string{
		"kind_size":   `repeat('k', 256), ` + within + `, ` + within,
		"header_size": `'k', convert_to(repeat('x', 2097153), 'UTF8'), ` + within,
		"body_size":   `'k', ` + within + `, convert_to(repeat('x', 16777217), 'UTF8')`,
	} {
		sql := `INSERT INTO ` + s.table("orders") +
			` (due, id, kind, header, body) VALUES (now(), gen_random_uuid(), ` + values + `)`
		_, err := s.pool.Exec(t.Context(), sql)
		if got := pgerr.Constraint(err); !strings.HasSuffix(got, constraint) {
			t.Errorf("%s: %v", constraint, err)
		}
	}
	s.exec(`INSERT INTO ` + s.table("orders") + ` (due, id, kind, header, body)
		VALUES (now(), gen_random_uuid(), repeat('k', 255), convert_to(repeat('x', 2097152), 'UTF8'),
		convert_to(repeat('x', 16777216), 'UTF8'))`)
}
