package migrations_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "migrate.sql")
}

// psql runs a script as a DBA does, and returns its output. Without a psql in PATH, pgx runs it.
func psql(t *testing.T, script string) (string, error) {
	t.Helper()
	binary, err := exec.LookPath("psql")
	if err != nil {
		err := likePsql(t, script)
		if err != nil {
			return err.Error(), err
		}
		return "", nil
	}
	command := exec.CommandContext(t.Context(), binary, "--no-psqlrc", "--quiet", pgdev.DSN(t))
	command.Stdin = strings.NewReader(script)
	out, err := command.CombinedOutput()
	return string(out), err
}

// likePsql runs a script in its own session: the text between two commands of psql as one statement, and a
// conditional part only if its condition is true.
func likePsql(t *testing.T, script string) error {
	t.Helper()
	conn := pgdev.Connect(t)
	run := func(sql string) error { _, err := conn.Exec(t.Context(), sql); return err }
	const condition, then, end = "SELECT NOT EXISTS ", " AS edda_missing \\gset\n\\if :edda_missing\n", "\\endif\n"
	parts := strings.Split(strings.Replace(script, "\\set ON_ERROR_STOP on\n", "", 1), condition)
	if err := run(parts[0]); err != nil {
		return err
	}
	for _, part := range parts[1:] {
		exists, text, _ := strings.Cut(part, then)
		text, after, _ := strings.Cut(text, end)
		var missing bool
		if err := conn.QueryRow(t.Context(), condition+exists).Scan(&missing); err != nil {
			return err
		}
		if missing {
			after = text + after
		}
		if err := run(after); err != nil {
			return err
		}
	}
	return nil
}

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := migrations.SQL(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Running a script twice, and then Up, has the result of Up: later runs change nothing.
func TestScriptUnderAnyName(t *testing.T) {
	t.Parallel()
	for _, suffix := range names {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			pool, schema := pgdev.Pool(t), named(t, suffix)
			for range 2 {
				if out, err := psql(t, script(t, schema.Name())); err != nil || out != "" {
					t.Fatalf("psql: %v\n%s", err, out)
				}
				wantComplete(t, pool, schema)
			}
			if err := migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name()}); err != nil {
				t.Fatal(err)
			}
			wantComplete(t, pool, schema)
		})
	}
}

// A script that fails in the middle leaves no trace.
func TestScriptIsOneTransaction(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	if _, err := pool.Exec(t.Context(), schema.Render(
		"CREATE SCHEMA :schema; CREATE TABLE :schema.dead_letter ()")); err != nil {
		t.Fatal(err)
	}
	if out, err := psql(t, script(t, schema.Name())); err == nil || !strings.Contains(out, "already exists") {
		t.Fatalf("psql over a table that is in the way: %v\n%s", err, out)
	}
	if err := version.Check(context.WithoutCancel(t.Context()), pool, schema); !errors.Is(err,
		migrations.ErrNotMigrated) {
		t.Errorf("after a failed script: %v", err)
	}
	status, err := migrations.Status(t.Context(), pool, migrations.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range status {
		if !m.Applied.IsZero() {
			t.Errorf("applied by a failed script: %+v", m)
		}
	}
}

func TestRefusesAName(t *testing.T) {
	t.Parallel()
	options := migrations.Options{Schema: "pg_edda"}
	_, statusErr := migrations.Status(t.Context(), nil, options)
	_, scriptErr := migrations.SQL(options.Schema)
	for call, err := range map[string]error{"Up": migrations.Up(t.Context(), nil, options), "Status": statusErr,
		"SQL": scriptErr} {
		if err == nil || !strings.Contains(err.Error(), "reserved by Postgres") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
