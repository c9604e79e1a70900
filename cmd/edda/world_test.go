package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

// world is a schema of one test, and the program run on it.
type world struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
}

// empty is a schema that does not exist yet.
func empty(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return &world{t: t, pool: pgdev.Pool(t), schema: pgdev.Schema(t)}
}

// migrated is a schema with all tables.
func migrated(t *testing.T) *world {
	t.Helper()
	w := empty(t)
	w.want(exitDone, "migrate", "up")
	return w
}

// said is the result of one run of the program.
type said struct {
	code     int
	out, err string
}

// edda runs the program on the schema of w.
func (w *world) edda(args ...string) said {
	w.t.Helper()
	return w.eddaIn(w.t.Context(), args...)
}

func (w *world) eddaIn(ctx context.Context, args ...string) said {
	w.t.Helper()
	return runWith(ctx, append(args, "--database", pgdev.DSN(w.t), "--schema", w.schema)...)
}

func runWith(ctx context.Context, args ...string) said {
	var out, complaint bytes.Buffer
	code := run(ctx, args, streams{out: &out, err: &complaint})
	return said{code, out.String(), complaint.String()}
}

// want runs the program, fails the test at a different exit code, and returns the result.
func (w *world) want(code int, args ...string) said {
	w.t.Helper()
	s := w.edda(args...)
	if s.code != code {
		w.t.Fatalf("edda %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), s.code, code, s.out, s.err)
	}
	if code == exitDone && s.err != "" {
		w.t.Errorf("edda %s complains of nothing: %s", strings.Join(args, " "), s.err)
	}
	return s
}

var (
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T][\d:.]+Z`)
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aTook   = regexp.MustCompile(`(handled|retried) +[0-9.]+(?:µs|ms|s|m[0-9.]*s?) +\S+`)
	spaces  = regexp.MustCompile(` +`)
)

// stable removes from a text the parts that differ from run to run: times, ids, the schema, and the width of columns.
func (w *world) stable(text string) string {
	text = strings.ReplaceAll(text, w.schema, "SCHEMA")
	text = strings.ReplaceAll(text, actorName(), "ACTOR")
	text = anyID.ReplaceAllString(anyTime.ReplaceAllString(text, "TIME"), "ID")
	text = aTook.ReplaceAllString(text, "$1 TOOK HOST")
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(spaces.ReplaceAllString(line, " "), " \n"))
	}
	return strings.Join(lines, "\n")
}

// prints compares a page; "| " begins each line of want, so that it can be indented.
func (w *world) prints(got, want string) {
	w.t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		if _, text, ok := strings.Cut(line, "| "); ok {
			lines = append(lines, strings.TrimRight(text, "\n"))
		}
	}
	if got, want := w.stable(got), strings.Join(lines, "\n"); got != want {
		w.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	sql = strings.ReplaceAll(sql, "edda.", pgx.Identifier{w.schema}.Sanitize()+".")
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) count(sql string) (n int) {
	w.t.Helper()
	sql = strings.ReplaceAll(sql, "edda.", pgx.Identifier{w.schema}.Sanitize()+".")
	if err := w.pool.QueryRow(w.t.Context(), sql).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// says fails the test unless a text has all of the parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it says\n%s\nand not %q", text, part)
		}
	}
}
