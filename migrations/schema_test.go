package migrations_test

import (
	_ "embed"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pg"
)

var rewrite = flag.Bool("rewrite", false, "accept the schema as it is: write testdata/schema.golden")

//go:embed testdata/describe.sql
var describeSQL string

const golden = "testdata/schema.golden"

// The whole schema with one queue fits on one page that a reviewer can read. A change of the schema changes this
// page, in the same commit.
func TestSchemaIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, endpoint := range []string{"mail", "orders"} { // all queues have the same shape
		s.exec("DROP TABLE " + s.table(endpoint))
	}
	got := s.describe()
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the schema differs from %s; accept it with: go test ./migrations -run Golden -rewrite\n(-golden "+
			"+schema)\n%s", golden, diff)
	}
}

// A weird name changes only the name.
func TestSchemaIsTheSameUnderAWeirdName(t *testing.T) {
	t.Parallel()
	plain, weird := newSite(t, ""), newSite(t, `weird"x y`)
	if diff := cmp.Diff(strings.Split(plain.describe(), "\n"), strings.Split(weird.describe(), "\n")); diff != "" {
		t.Errorf("(-plain +weird):\n%s", diff)
	}
}

// describe prints the schema, with its name written as edda.
func (s *site) describe() string {
	s.Helper()
	statements := pg.Load(describeSQL, s.schema)
	quoted := pgx.Identifier{s.schema.Name()}.Sanitize()
	rows, err := s.pool.Query(s.Context(), statements.Get("describe"), quoted)
	if err != nil {
		s.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	text := strings.Join(lines, "\n") + "\n"
	return strings.NewReplacer(quoted+".", "edda.", s.schema.Name()+".", "edda.").Replace(text)
}
