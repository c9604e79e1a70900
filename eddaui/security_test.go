package eddaui_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/demo/world"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// kept is a log that many may write.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// The log says where something was refused or failed. It has no body, no state and no control character, whatever was
// asked for.
func TestLogHasNoBodies(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Hostile(t.Context(), pool, schema)
	tell(t, w, err)
	log := &kept{}
	s := serveWith(t, pool, schema, eddaui.Options{
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Authorize: func(r *http.Request) (eddaui.Actor, error) {
			if r.Header.Get("X-Refused") != "" {
				return eddaui.Actor{}, fmt.Errorf("no session for %s", r.URL.Path)
			}
			return eddaui.Actor{May: eddaui.Look | eddaui.Bodies}, nil
		},
	})
	s.crawl("/", func(string, string) {})
	s.do(http.MethodGet, "/sagas/caller/%1b%5b31m%0d%0aforged", "X-Refused", "1")
	s.do(http.MethodGet, "/find?q=key-of-a-person", "X-Refused", "1")
	text := log.String()
	if !strings.Contains(text, "forged") {
		t.Fatalf("the log does not tell of a refused request: %s", text)
	}
	if strings.Contains(text, "window.hurt") || strings.Contains(text, "of-a-person") {
		t.Errorf("the log has what pages show: %s", text)
	}
	if strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "\nforged") {
		t.Errorf("the log has control characters: %q", text)
	}
}

// Every address of every page is read, and the database is as it was.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Paused(t.Context(), pool, schema) // nothing runs in it
	tell(t, w, err)
	before := content(t, pool, schema)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(^eddaui.May(0))})
	if paths := s.crawl("/", func(string, string) {}); len(paths) < 30 {
		t.Errorf("only %d pages were read", len(paths))
	}
	for _, path := range paths {
		s.do(http.MethodGet, path)
		s.do(http.MethodHead, path)
	}
	after := content(t, pool, schema)
	for table, sum := range before {
		if after[table] != sum {
			t.Errorf("reading pages has changed the table %s", table)
		}
	}
	if len(before) < 30 || len(after) != len(before) {
		t.Errorf("there were %d tables, and are %d", len(before), len(after))
	}
}

// content is a sum of each table of a schema.
func content(t *testing.T, pool *pgxpool.Pool, schema string) map[string]string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid =
		c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, schema)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, table := range tables {
		var sum string
		sql := "SELECT md5(coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '')) FROM " +
			pgx.Identifier{schema, table}.Sanitize() + " t"
		if err := pool.QueryRow(t.Context(), sql).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		sums[table] = sum
	}
	return sums
}

// A script of another site gets no answer that it may read, also not by asking first.
func TestOtherSitesMayNotRead(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	s := serve(t, pool, schema, eddaui.Options{})
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			a := s.do(method, path, "Origin", "https://evil.example", "Access-Control-Request-Method", "GET")
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s has the header %s", method, path, name)
				}
			}
			if got := a.header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
				t.Errorf("%s %s may be embedded elsewhere: %q", method, path, got)
			}
		}
	}
}
