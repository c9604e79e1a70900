package settings_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "settings.sql")
}

// A schema that grew: one probe a poll, whatever number of endpoints there are.
func TestSettingsAreProbed(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := pgtest.Migrated(t, pool)
	fill := `WITH q AS (INSERT INTO :schema.queue (endpoint) SELECT 'e' || n FROM generate_series(1, 5000) n
		RETURNING endpoint)
		SELECT count(*) FROM q`
	pgtest.Probes{
		SQL:      settings.Statements(settings.New(schema)),
		Fill:     fill + `; INSERT INTO :schema.endpoint_setting (endpoint) SELECT endpoint FROM :schema.queue`,
		MaxRows:  2,
		Settings: []string{"SET LOCAL enable_seqscan = off"},
		Statements: map[string][]string{
			"get": {"e7"}, "pause_in_batch": {"e7", "x"}, "pause": {"e7", "x", "ann"}, "state": {"e7"},
			"resume":          {"e7"},
			"set_concurrency": {"e7", "3"},
		},
	}.Check(t, pool, schema)
}
