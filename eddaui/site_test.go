package eddaui_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

var update = eddaui.Update

// prefix is where the pages are mounted.
const prefix = "/tools/edda"

// site is a server with the pages of one schema.
type site struct {
	t      *testing.T
	ui     *eddaui.UI
	server *httptest.Server
	pool   *pgxpool.Pool
	schema string
}

func allow(may eddaui.Permission) func(*http.Request) (eddaui.Actor, error) {
	return func(*http.Request) (eddaui.Actor, error) { return eddaui.Actor{Name: "ann", Permissions: may}, nil }
}

// newSchema returns a new schema with the empty tables of Edda.
func newSchema(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	return pool, schema
}

// newShop returns a schema with the data of a shop.
func newShop(t *testing.T) (*pgxpool.Pool, string, *world.Shop) {
	t.Helper()
	pool, schema := newSchema(t)
	shop, err := world.Seed(t.Context(), pool, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shop.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool, schema, shop
}

func serve(t *testing.T, pool *pgxpool.Pool, schema string, o eddaui.Options) *site {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	return serveWith(t, pool, schema, o)
}

// serveWith is serve with the given log handler.
func serveWith(t *testing.T, pool *pgxpool.Pool, schema string, o eddaui.Options) *site {
	t.Helper()
	o.Schema = schema
	ui, err := eddaui.New(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, ui))
	s := &site{t: t, ui: ui, server: httptest.NewServer(mux), pool: pool, schema: schema}
	t.Cleanup(func() {
		ui.Close()
		s.server.Close()
	})
	return s
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	body   string
	url    *url.URL // after redirects
}

func (s *site) do(method, path string, headers ...string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), pgdev.Patience(20*time.Second)) // a stream has no end
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+prefix+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	got, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(body), got.Request.URL}
}

// get reads a page that must exist.
func (s *site) get(path string) string {
	s.t.Helper()
	a := s.do(http.MethodGet, path)
	if a.status != http.StatusOK {
		s.t.Fatalf("GET %s is %d:\n%s", path, a.status, a.body)
	}
	return a.body
}

var links = regexp.MustCompile(`(?:href|src|data-stream)="([^"#][^"]*)`)

// crawl follows every link from a page on, and calls look with each page. It visits at most three pages of one sort:
// of a hundred messages a few are enough.
func (s *site) crawl(from string, look func(path, body string)) (paths []string) {
	s.t.Helper()
	root, err := url.Parse(s.server.URL + prefix + from)
	if err != nil {
		s.t.Fatal(err)
	}
	seen, sorts, todo, by := map[string]bool{}, map[string]int{}, []*url.URL{root}, map[*url.URL]string{}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		path := strings.TrimPrefix(at.RequestURI(), prefix)
		if seen[path] {
			continue
		}
		seen[path] = true
		if sort := sortOf(path); sorts[sort] >= 3 {
			continue
		} else if sorts[sort]++; strings.Contains(path, "live=") {
			continue
		}
		a := s.do(http.MethodGet, path)
		if a.status != http.StatusOK {
			s.t.Errorf("a link of %s leads to %s, which is %d:\n%.300s", by[at], path, a.status, a.body)
			continue
		}
		paths = append(paths, path)
		if look(path, a.body); !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(a.body, -1) {
			to, err := a.url.Parse(html.UnescapeString(m[1]))
			if err != nil || to.Host != root.Host || !strings.HasPrefix(to.Path, prefix+"/") {
				s.t.Errorf("%s links to %s, which is outside", path, m[1])
				continue
			}
			todo, by[to] = append(todo, to), path
		}
	}
	return paths
}

var anyOne = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{12}|\d+`)

// sortOf returns a path without the parts that differ between pages of one sort.
func sortOf(path string) string { return anyOne.ReplaceAllString(path, "*") }

// Texts that differ from run to run, in the order of their replacement.
var (
	varying = []struct {
		what *regexp.Regexp
		by   string
	}{
		{regexp.MustCompile(`<(td|dd) class="((?:n |wide )?pace)">.*?</(?:td|dd)>`), "<$1 class=\"$2\">COUNTED</$1>"},
		{regexp.MustCompile(`(, |>)[\d.]+( a minute|/min)\b`), "${1}RATE"},
		{regexp.MustCompile(`<time [^>]*>[^<]*</time>`), "<time>"},
		{regexp.MustCompile(`[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d (&#43;|-)\d\d:\d\d \w+`), "MOMENT"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3}Z| UTC)`), "MOMENT"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*Z`), "MOMENT"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+&#43;00:00`), "MOMENT"},
		{regexp.MustCompile(`(The endpoint is paused since MOMENT|: paused|>paused) by [^:<( ]+`), "${1} by SOMEBODY"},
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
		{regexp.MustCompile(`…[0-9a-f]{8}`), "…ID"},
		{regexp.MustCompile(`v=[0-9a-f]{16}`), "v=SUM"},
		{regexp.MustCompile(`due=\d+`), "due=MOMENT"},
		{regexp.MustCompile(`\d[\d.]* (µs|ms|s|min|h|days)\b( \d+ min)?`), "SPAN"},
		{regexp.MustCompile(`\d[\dhms]*m\b`), "SPAN"},
		{regexp.MustCompile(`(, )?handler SPAN`), ""}, // a quick handler has no time
		{regexp.MustCompile(`[^ >]+ \(process \d+\)`), "PROCESS"},
		{regexp.MustCompile(`process \d+`), "process PID"},
		{regexp.MustCompile(`\d[\d.]* [kM]?B\b`), "SIZE"},
		{regexp.MustCompile(`paused</span> <span class="soft">by [^<]+`), "paused by SOMEBODY"},
		{regexp.MustCompile(`class="cell (held|free)"`), `class="cell"`}, // of a worker
		{regexp.MustCompile(`\d+ of \d+ in use`), "IN USE"},
	}
	host, _ = os.Hostname()
	process = regexp.MustCompile(`HOST/[0-9a-f]{12}`)
)

func steady(body string) string {
	for _, v := range varying {
		body = v.what.ReplaceAllString(body, v.by)
	}
	return process.ReplaceAllString(strings.ReplaceAll(body, host, "HOST"), "HOST/PROCESS")
}

// mainOf returns the part between the header and the footer of a page, which are the same everywhere.
func mainOf(body string) string {
	from, to := strings.Index(body, "<main"), strings.Index(body, "</main>")
	if from < 0 || to < 0 {
		return body
	}
	return body[from : to+len("</main>")]
}

// partOf is the element with the id, or the class, that a path has behind its #. Without one it is all of the page
// between header and footer.
func partOf(t *testing.T, path, body string) string {
	t.Helper()
	_, name, _ := strings.Cut(path, "#")
	if name == "" {
		return mainOf(body)
	}
	tag := regexp.MustCompile(`<(\w+)[^>]* (?:id|class)="` + regexp.QuoteMeta(name) + `"`)
	begin := tag.FindStringSubmatchIndex(body)
	if begin == nil {
		t.Fatalf("%s has no part %s:\n%s", path, name, mainOf(body))
	}
	tags := regexp.MustCompile(`</?` + body[begin[2]:begin[3]] + `\b`)
	open := 0
	for _, at := range tags.FindAllStringIndex(body[begin[0]:], -1) {
		if open++; body[begin[0]+at[0]+1] == '/' {
			open -= 2
		}
		if open == 0 {
			return body[begin[0]:begin[0]+at[1]] + ">"
		}
	}
	t.Fatalf("%s does not end its part %s", path, name)
	return ""
}

var row = regexp.MustCompile(`(?s)<tr id="(\w+)-[^"]*">.*?</tr>\n`)

// firstRows keeps two rows of each list, and adds their number.
func firstRows(body string) string {
	rows := map[string]int{}
	body = row.ReplaceAllStringFunc(body, func(text string) string {
		kind := row.FindStringSubmatch(text)[1]
		if rows[kind]++; rows[kind] > 2 {
			return ""
		}
		return text
	})
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		body += fmt.Sprintf("\n%d rows %s-", rows[kind], kind)
	}
	return body
}

// golden compares a page with the file of that name.
func golden(t *testing.T, name, body string) {
	t.Helper()
	if got, want := steady(body)+"\n", goldenFile(t, name, body); got != want {
		t.Errorf("the page is not as testdata/%s.html has it; go test ./eddaui -update writes it anew:\n%s", name,
			firstDifference(want, got))
	}
}

// goldenSoon compares a page of a world that is running: it reads the page again while it differs, since a batch that
// looks for work holds a slot for a moment.
func goldenSoon(t *testing.T, name string, read func() string) {
	t.Helper()
	body := read()
	want := goldenFile(t, name, body)
	for began := time.Now(); steady(body)+"\n" != want && time.Since(began) < pgdev.Patience(2*time.Second); {
		<-time.After(10 * time.Millisecond)
		body = read()
	}
	golden(t, name, body)
}

// goldenFile returns the contents of the file of that name, which -update writes first.
func goldenFile(t *testing.T, name, body string) string {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(steady(body)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./eddaui -update writes it", err)
	}
	return string(want)
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for n := range min(len(a), len(b)) {
		if a[n] != b[n] {
			return "want " + a[n] + "\n got " + b[n]
		}
	}
	return "one is longer"
}

func (s *site) sorted(paths []string) []string {
	sorts := map[string]bool{}
	for _, p := range paths {
		sorts[sortOf(p)] = true
	}
	var all []string
	for p := range sorts {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}
