package eddaui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// kept is a log for concurrent writers.
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

// Refusals and failures are logged, without bodies, states and control characters, for any request.
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
			return eddaui.Actor{Permissions: eddaui.View | eddaui.Bodies}, nil
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

// After every address of every page was read, the database is unchanged.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Paused(t.Context(), pool, schema) // nothing runs in it
	tell(t, w, err)
	before := content(t, pool, schema)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(^eddaui.Permission(0))})
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

// content returns a checksum of each table of a schema.
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

// A script of a different site cannot read an answer, not even after a preflight request.
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

// aloud matches parts of the state of 2026-0012 and of a letter that no answer may show.
var aloud = regexp.MustCompile(`27182812|"?Template"?: ?"x"`)

// Whatever Redact does, each page, stream, JSON, preview and file that would show a body or a state answers in time
// without it, with a note in its place and in the log. The log has no body either.
func TestEveryPageOutlivesRedact(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.furnish()
	all := st.withRedact(func(string, json.RawMessage) json.RawMessage { return json.RawMessage(`"WITHHELD"`) },
		io.Discard)
	asked, sorts := all.showing("WITHHELD")
	for _, sort := range []string{"audit", "dead", "instance", "jobs", "manifests", "messages", "runs", "sagas"} {
		if !sorts[sort] {
			t.Errorf("no answer of %s shows what Redact has returned, only %v", sort, slices.Sorted(maps.Keys(sorts)))
		}
	}
	for name, c := range map[string]struct {
		redact func(body json.RawMessage, over chan struct{})
		logged string
	}{
		"panics":        {func(body json.RawMessage, _ chan struct{}) { panic(string(body)) }, "security_test.go"},
		"exits":         {func(json.RawMessage, chan struct{}) { runtime.Goexit() }, "ended its goroutine"},
		"never returns": {func(_ json.RawMessage, over chan struct{}) { <-over }, "has not returned within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, over := &kept{}, make(chan struct{})
			t.Cleanup(func() { close(over) })
			failing := st.withRedact(func(_ string, body json.RawMessage) json.RawMessage {
				c.redact(body, over)
				return nil
			}, log)
			failing.t = t
			for _, one := range asked {
				a := failing.answer(one)
				if text := html.UnescapeString(a.body); a.status != one.status || aloud.MatchString(text) ||
					!strings.Contains(text, "not shown: Options.Redact failed") {
					t.Errorf("%s is %d, want %d without the text: %s", one.path, a.status, one.status, mainOf(a.body))
				} else if one.path == "/instance/repair" && !strings.Contains(text, "difference is hidden") {
					t.Errorf("the preview of a repair does not say that a difference is hidden: %s", mainOf(a.body))
				}
			}
			failing.open("/sagas/order/2026-0012?live=1").until("the state", fragment("state", "not shown: Options."))
			if text := log.String(); !strings.Contains(text, "edda: ui: Options.Redact failed") ||
				!strings.Contains(text, c.logged) || aloud.MatchString(strings.ReplaceAll(text, `\`, "")) {
				t.Errorf("the log is\n%s", text)
			}
		})
	}
}

// withRedact returns the stage with pages of its own.
func (st *stage) withRedact(f func(string, json.RawMessage) json.RawMessage, log io.Writer) *stage {
	ui := serveWith(st.t, st.pool, st.schema, eddaui.Options{Authorize: allow(everything), Redact: f,
		Sagas: []*saga.Definition{world.Orders}, Log: slog.New(slog.NewTextHandler(log, nil))})
	return &stage{site: ui, sql: st.sql}
}

// asking is a request, with a form or without, and the status of its answer.
type asking struct {
	path   string
	form   url.Values
	status int
}

func (st *stage) answer(one asking) answer {
	st.t.Helper()
	if one.form == nil {
		return st.do(http.MethodGet, one.path)
	}
	return st.post(one.path, one.form)
}

// showing returns the requests whose answers contain a text, and the first parts of their addresses.
func (st *stage) showing(text string) (all []asking, sorts map[string]bool) {
	st.t.Helper()
	number, group := st.letters(3, "not redacted")
	st.exec(`UPDATE :schema.dead_letter_job SET patch = '{"Template":"x"}' WHERE id = $1`, st.job("paused"))
	st.exec(`INSERT INTO :schema.audit (actor, origin, reason, verb, target, before)
		SELECT 'ann', '', '', 'saga.repair', 'order/2026-0012', json_build_object('state', state::json)
		FROM :schema.saga WHERE key = '2026-0012'`)
	of := []string{"saga", "order", "key", "2026-0012", "reason", "x"}
	version := fmt.Sprint(ask[int64](st, "SELECT version FROM :schema.saga WHERE key = '2026-0012'"))
	path, export := st.agreement(st.post("/sagas/order/export", form()), "")
	all = []asking{
		{fmt.Sprintf("/dead/%d/discard", number), form("reason", "x"), http.StatusOK},
		{"/dead/edit", form("group", group, "way", "canary", "patch", `{"a":1}`), http.StatusOK},
		{"/instance/end", form(append(of, "version", version)...), http.StatusOK},
		{"/instance/repair", form(append(of, "version", version, "state", "{}")...), http.StatusOK},
		{"/instance/patch", form(append(of, "version", "1", "patch", "{}")...), http.StatusConflict},
		{path, export, http.StatusOK},
	}
	sorts = map[string]bool{}
	for _, one := range all {
		if a := st.answer(one); a.status != one.status || !strings.Contains(a.body, text) {
			st.t.Errorf("%s is %d, or does not show %s: %s", one.path, a.status, text, mainOf(a.body))
		}
		sorts[strings.Split(one.path, "/")[1]] = true
	}
	st.crawl("/", func(path, body string) {
		if sort := strings.Split(strings.TrimSuffix(path, ".json"), "/")[1]; strings.Contains(body, text) {
			all, sorts[sort] = append(all, asking{path, nil, http.StatusOK}), true
		}
	})
	return all, sorts
}
