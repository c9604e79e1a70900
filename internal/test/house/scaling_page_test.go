package house

import (
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

var scalingQuery = regexp.MustCompile("(?s)```sql\n(-- query \\d.*?)```")

// The queries on the page run on the server.
func TestScalingPageQueriesRun(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	queries := scalingQuery.FindAllStringSubmatch(read(t, "docs/operate/scaling.md"), -1)
	if len(queries) != 5 {
		t.Errorf("docs/operate/scaling.md has %d queries, want 5", len(queries))
	}
	for _, m := range queries {
		query := strings.NewReplacer("edda.", pgx.Identifier{schema}.Sanitize()+".", "'edda'",
			"'"+schema+"'").Replace(m[1])
		rows, err := pool.Query(t.Context(), query)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, m[1])
		}
	}
}
