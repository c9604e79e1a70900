package eddaui_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// visited is a world with the pages to visit, or the parts of them that differ from those of the shop. {first} is the
// id of its first message.
type visited struct {
	seed  func(ctx context.Context, pool *pgxpool.Pool, schema string) (*world.Stage, error)
	pages map[string]string
}

// worlds are as small as the tests need them.
var worlds = map[string]visited{
	"living": {
		func(ctx context.Context, pool *pgxpool.Pool, schema string) (*world.Stage, error) {
			return world.Living(ctx, pool, schema, 20_000)
		},
		map[string]string{
			"now": "/#sentences", "sagas": "/sagas#sagas", "quiet": "/sagas#oldest", "instances": "/sagas/order#living",
			"later": "/sagas/order?after=2026-0019997#living", "prefix": "/sagas/order?prefix=2026-000123#living",
		},
	},
	"dead": {
		func(ctx context.Context, pool *pgxpool.Pool, schema string) (*world.Stage, error) {
			return world.Dead(ctx, pool, schema, 3_000, 300)
		},
		map[string]string{
			"now": "/#sentences", "dead": "/dead#groups", "endpoint": "/endpoints/erp#says",
			"filtered": "/dead?endpoint=mails#groups", "group": "/dead/groups/dfec56f98bbb#letters",
		},
	},
	"hostile": {world.Hostile, map[string]string{
		"now": "/#sentences", "sagas": "/sagas#sagas", "instances": "/sagas/caller#living", "dead": "/dead#groups",
		"endpoint": "/endpoints/doors#says", "schedules": "/manifests#manifests",
		"manifest": "/manifests/night%2Fknock#runs", "limits": "/limits#leases", "processes": "/processes#processes",
		"message":  "/messages/{first}#attempts",
		"instance": "/instance?saga=caller&key=%3Cscript%3Ewindow.hurt%3D1%3C%2Fscript%3E#timeline",
		"find":     "/find?q=%3Cscript%3Ewindow.hurt%3D1%3C%2Fscript%3E",
	}},
	"newer": {world.Newer, map[string]string{"now": "/"}},
	"forgetful": {world.Forgetful, map[string]string{
		"now": "/#sentences", "instance": "/sagas/order/2026-0001#timeline", "instances": "/sagas/order#ended",
		"message": "/messages/{first}",
	}},
	"large": {world.Large, map[string]string{
		"instance": "/sagas/archive/books#timeline", "sagas": "/sagas#sagas",
	}},
	"crowd": {world.Crowd, map[string]string{
		"conversation": "/conversations/{first}#tree", "message": "/messages/{first}#attempts", "dead": "/dead#groups",
	}},
	"partitioned": {world.Partitioned, map[string]string{
		"now": "/#sentences", "rows": "/#e-guests.p2", "endpoint": "/endpoints/guests#row",
		"partition": "/endpoints/guests.p1#row", "paused": "/endpoints/guests.p2#says", "limits": "/limits#leases",
	}},
	"relayed": {world.Relayed, map[string]string{
		"border": "/border", "conversation": "/conversations/{first}#tree", "now": "/#e-shop.events",
		"relay": "/endpoints/shop.events#row",
	}},
	"paused": {world.Paused, map[string]string{
		"now": "/#sentences", "endpoint": "/endpoints/payments#says", "schedules": "/manifests#manifests",
		"manifest": "/manifests/hall%2Fcount",
	}},
}

func TestPagesOfWorlds(t *testing.T) {
	t.Parallel()
	for name, v := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, schema := newSchema(t)
			w, err := v.seed(t.Context(), pool, schema)
			tell(t, w, err)
			s := serve(t, pool, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Bodies), Sagas: w.Sagas})
			for page, path := range v.pages {
				path = strings.ReplaceAll(path, "{first}", w.First.String())
				address, _, _ := strings.Cut(path, "#")
				goldenSoon(t, name+"/"+page, func() string {
					return firstRows(unlike(partOf(t, path, s.do(http.MethodGet, address).body)))
				})
			}
		})
	}
}

var (
	padding = regexp.MustCompile(`x{1000,}`)
	backend = regexp.MustCompile(`(session |backend\()\d+`)
	role    = regexp.MustCompile(`t_\w+_reader`)
	typed   = regexp.MustCompile(`<input [^>]*>`) // has the typed text unchanged
)

// unlike removes texts that differ in worlds from run to run, and long repetitions.
func unlike(body string) string {
	body = role.ReplaceAllString(backend.ReplaceAllString(steady(body), "${1}PID"), "READER")
	return noNumbers(padding.ReplaceAllString(body, "x…"))
}

// tell ends a world with its test.
func tell(t *testing.T, w *world.Stage, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// as returns a pool of a role that may read.
func as(t *testing.T, pool *pgxpool.Pool, role string) *pgxpool.Pool {
	t.Helper()
	config := pool.Config().Copy()
	pgtest.Become(config, role)
	reader, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	return reader
}

// A page that the role may not read names the missing right, and every other page is complete.
func TestPagesOfARoleThatLacksARight(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	role := pgtest.Reader(t, pool, schema)
	w, err := world.Denied(t.Context(), pool, schema, role)
	tell(t, w, err)
	s := serve(t, as(t, pool, role), schema, eddaui.Options{})
	for name, want := range map[string]int{
		"": http.StatusServiceUnavailable, "dead": http.StatusServiceUnavailable, "sagas": http.StatusOK,
		"limits": http.StatusOK,
	} {
		a := s.do(http.MethodGet, "/"+name)
		if a.status != want {
			t.Errorf("/%s is %d", name, a.status)
		}
		if name == "dead" {
			golden(t, "denied/dead", mainOf(a.body))
		}
	}
}

// A transaction that keeps dead rows is named, with the statement that ends it.
func TestPagesOfADatabaseInTrouble(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Trouble(t.Context(), pool, schema)
	tell(t, w, err)
	s := serve(t, as(t, pool, pgtest.Reader(t, pool, schema)), schema, eddaui.Options{})
	patience := time.After(pgdev.Patience(30 * time.Second))
	for tick := time.NewTicker(50 * time.Millisecond); ; { // Postgres counts dead rows with a delay
		page := s.get("/")
		if strings.Contains(page, "monthly report") {
			golden(t, "trouble/now", unlike(partOf(t, "/#sentences", page)))
			return
		}
		select {
		case <-tick.C:
		case <-patience:
			t.Fatalf("the page does not name it: %s", mainOf(page))
		}
	}
}

// sheet returns a path without its query.
func sheet(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// A stored text is only text: on a page, in its JSON, and in an answer to a wrong address.
func TestHostileTextsAreTexts(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Hostile(t.Context(), pool, schema)
	tell(t, w, err)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Bodies),
		Sagas: w.Sagas, Trace: "https://tempo.example/trace/{trace}"})
	pages := 0
	look := func(path, body string) {
		pages++
		if strings.HasPrefix(path, "/static/") {
			return
		}
		if strings.HasSuffix(sheet(path), ".json") {
			if !json.Valid([]byte(body)) {
				t.Errorf("%s is no JSON: %.200s", path, body)
			}
			return
		}
		body = typed.ReplaceAllString(body, "")
		at := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
		if at >= 0 {
			t.Errorf("%s has a character that is not printed: %.80q", path, body[at:])
		}
		for _, text := range world.HostileTexts {
			if strings.ContainsAny(text, "<>") && strings.Contains(body, text) {
				t.Errorf("%s has as it came: %.80q", path, text)
			}
		}
	}
	s.crawl("/", look)
	for _, text := range world.HostileTexts {
		q, part := url.QueryEscape(text), url.PathEscape(text)
		for _, path := range []string{
			"/instance?saga=caller&key=" + q, "/instance?saga=" + q + "&key=" + q, "/find?q=" + q,
			"/dead?endpoint=" + q, "/dead?kind=" + q, "/dead?after=" + q, "/sagas/caller?prefix=" + q,
			"/manifests?state=" + q, "/endpoints/" + part, "/sagas/" + part, "/messages/" + part,
		} {
			for _, path := range []string{path, strings.Replace(path, "?", ".json?", 1)} {
				a := s.do(http.MethodGet, path)
				if a.status >= http.StatusInternalServerError {
					t.Errorf("%s is %d: %s", path, a.status, mainOf(a.body))
				}
				look(path, a.body)
			}
		}
	}
	if pages < 300 {
		t.Errorf("only %d pages were looked at", pages)
	}
}

// An instance that ended six days ago is found by its key and by its id, with its whole history.
func TestAnEndedInstanceIsFoundAfterSixDays(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Relayed(t.Context(), pool, schema)
	tell(t, w, err)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Bodies)})
	before := s.get("/find?q=2026-0001")
	id := regexp.MustCompile(`data-copy="([0-9a-f-]{36})"`).FindStringSubmatch(before)
	if id == nil {
		t.Fatalf("the page has no id: %s", mainOf(before))
	}
	for day := 3; day <= 6; day += 3 {
		if err := w.Days(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{"2026-0001", id[1]} {
		a := s.do(http.MethodGet, "/find?q="+q)
		if !strings.HasPrefix(a.url.Path, prefix+"/sagas/order/2026-0001") {
			t.Errorf("finding %q leads to %s", q, a.url)
		}
		if steady(mainOf(a.body)) != steady(mainOf(before)) {
			t.Errorf("after six days the page of %q is another one: %s", q, mainOf(a.body))
		}
	}
	if err := w.Days(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Days(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := s.do(http.MethodGet, "/find?q=2026-0001"); strings.Contains(a.url.Path, "/sagas/") {
		t.Errorf("after twelve days it is still known, so that the test shows nothing")
	}
}

// A time without events is one line.
func TestIdleTimeIsOneLine(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	w, err := world.Relayed(t.Context(), pool, schema)
	tell(t, w, err)
	s := serve(t, pool, schema, eddaui.Options{})
	if page := s.get("/sagas/order/2026-0001"); strings.Contains(page, "nothing</span>") {
		t.Errorf("idle time is shown where there was none: %s", mainOf(page))
	}
	if err := w.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := s.get("/sagas/order/2026-0001")
	if gap := "<span>no message for 3 h</span>"; strings.Count(page, gap) != 1 {
		t.Errorf("the page has no %s: %s", gap, mainOf(page))
	}
}
