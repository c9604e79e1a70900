package eddaui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/live"
	"github.com/edda-go/edda/internal/ui/page"
	"github.com/jackc/pgx/v5/pgconn"
)

const jsonSuffix = ".json"

type jsonKey struct{}

// asJSON removes the suffix .json from an address, and records it.
func asJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, jsonSuffix) {
			r = r.WithContext(context.WithValue(r.Context(), jsonKey{}, true))
			u := *r.URL
			u.Path, u.RawPath = strings.TrimSuffix(u.Path, jsonSuffix), strings.TrimSuffix(u.RawPath, jsonSuffix)
			r.URL = &u
		}
		next.ServeHTTP(w, r)
	})
}

func wantsJSON(r *http.Request) bool { return r.Context().Value(jsonKey{}) != nil }

// page serves a page as HTML, as JSON or as a stream of its changes.
func (u *UI) page(p route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if !storable(r.URL.Path) || !allStorable(query) {
			u.complain(w, r, http.StatusNotFound, "No page has this address.")
			return
		}
		ask := page.Ask{Path: r.PathValue, Query: query, Bodies: actorOf(r.Context()).Permissions&Bodies != 0}
		if query.Has("live") {
			u.stream(w, r, p, ask)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), readLimit)
		defer cancel()
		found, err := u.read(ctx, p, ask)
		switch {
		case err != nil:
			u.fail(w, r, err)
		case wantsJSON(r):
			u.writeJSON(w, r, http.StatusOK, found.JSON())
		case query.Get("as") == "mermaid":
			u.writeMermaid(w, r, found)
		default:
			if f, ok := found.(*page.Find); ok && f.Only() != "" {
				w.Header().Set("Location", "./"+f.Only()) // relative, like all links: the prefix is unknown
				w.WriteHeader(http.StatusFound)
				return
			}
			u.show(w, r, http.StatusOK, p.template, u.frameOf(r, found))
		}
	})
}

// storable reports whether a name may be in the database: it is UTF-8, and without the character 0.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func allStorable(query url.Values) bool {
	for name, values := range query {
		if !storable(name) || slices.ContainsFunc(values, func(v string) bool { return !storable(v) }) {
			return false
		}
	}
	return true
}

// stream keeps a page up to date. One read serves all viewers of the same contents.
func (u *UI) stream(w http.ResponseWriter, r *http.Request, p route, ask page.Ask) {
	address := *r.URL
	query := address.Query()
	query.Del("live")
	may := uint64(actorOf(r.Context()).Permissions) // decides which parts and buttons they see
	key := address.EscapedPath() + "?" + query.Encode() + " " + strconv.FormatUint(may, 2)
	f := u.frameOf(r, nil)
	read := func(ctx context.Context) ([]live.Fragment, error) {
		found, err := u.read(ctx, p, ask)
		if err != nil {
			return nil, errors.New(textOf(err))
		}
		now := f
		now.put(found)
		return u.look.fragments(p.template, now)
	}
	err := u.hub.Serve(w, r, live.Page{Kind: p.template, Key: key, Read: resting(read, rests[p.template]),
		May: func() bool { return u.stillMay(r) }})
	if err != nil {
		u.log.WarnContext(r.Context(), "edda: ui: a stream was cut", "path", r.URL.Path, "error", err)
	}
}

// resting returns a read that repeats its last result for a time.
func resting(read live.Read, rests time.Duration) live.Read {
	var (
		last []live.Fragment
		at   time.Time
	)
	return func(ctx context.Context) ([]live.Fragment, error) { // only one goroutine reads a page
		if last != nil && time.Since(at) < rests {
			return last, nil
		}
		all, err := read(ctx)
		if err == nil {
			last, at = all, time.Now()
		}
		return all, err
	}
}

// frame is the data of a template: a page, and its surroundings.
type frame struct {
	Root    string // relative address of the first page: "", "../", …
	JSON    string // relative address of this page as JSON
	Others  []Database
	Same    string // address of this kind of page from the first page of any database, "" is its first page
	Live    string // relative address of the stream, "" for a page that does not change by itself
	Done    string // the result of an action, "" if this page does not follow one
	Bodies  bool
	Actor   Actor
	Section string
	Title   string
	Command string
	Audit   string // relative to Root: the changes of this target
	Now     time.Time
	Page    page.Page
}

// rootOf returns the relative address of the first page.
func rootOf(r *http.Request) string {
	return cmp.Or(strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1), "./")
}

// Buttons returns the forms that the actor may send.
func (f frame) Buttons(forms []act.Form) (all []act.Form) {
	for _, form := range forms {
		if f.Actor.Permissions&anyOf(form.Rights) != 0 {
			all = append(all, form)
		}
	}
	return all
}

func (u *UI) frameOf(r *http.Request, found page.Page) frame {
	path := r.URL.EscapedPath()
	f := frame{Root: rootOf(r), Actor: actorOf(r.Context()), Now: time.Now(), Others: u.o.Databases,
		Same: sameOf(r)}
	f.Bodies = f.Actor.Permissions&Bodies != 0
	last := path[strings.LastIndex(path, "/")+1:]
	if last == "" {
		last = "now"
	}
	query := r.URL.Query()
	query.Del("live")
	f.Done = act.Told(query.Get("done"), query.Get("counts"))
	query.Del("done")
	query.Del("counts")
	f.JSON = withQuery("./"+last+jsonSuffix, query)
	query.Set("live", "1")
	f.Live = withQuery("./"+last, query)
	if found != nil {
		f.put(found)
	}
	return f
}

// sameOf returns the address of a page that every database has: a page without a name or an id in its address.
func sameOf(r *http.Request) string {
	path, ok := strings.CutPrefix(r.Pattern, "GET /")
	if !ok || strings.Contains(path, "{") || path == "instance" {
		return ""
	}
	return path
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func (f *frame) put(found page.Page) {
	about := found.About()
	f.Page, f.Section, f.Title, f.Command, f.Now = found, about.Section, about.Title, about.Command, about.Now
	f.Audit = about.Audit
}

// show sends a page after it was written as a whole.
func (u *UI) show(w http.ResponseWriter, r *http.Request, status int, template string, f frame) {
	var whole bytes.Buffer
	if err := u.look.page(&whole, template, f); err != nil {
		u.log.ErrorContext(r.Context(), "edda: ui: a page cannot be written", "page", template, "error", err)
		http.Error(w, "this page failed: the log of the program has the details", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = whole.WriteTo(w)
}

func (u *UI) writeJSON(w http.ResponseWriter, r *http.Request, status int, value any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		u.log.ErrorContext(r.Context(), "edda: ui: a page cannot be written", "page", r.URL.Path, "error", err)
		http.Error(w, "this page failed: the log of the program has the details", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

// writeMermaid writes the graph of a page as a text for Mermaid.
func (u *UI) writeMermaid(w http.ResponseWriter, r *http.Request, found page.Page) {
	graph, ok := found.(interface{ Mermaid() string })
	if !ok {
		u.complain(w, r, http.StatusNotFound, "This page has no graph.")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, graph.Mermaid())
}

// notice is a page with one sentence.
type notice struct {
	page.Head
	Status int
	Text   string
}

func (n notice) JSON() any { return map[string]string{"error": n.Text} }

// complain answers with a text.
func (u *UI) complain(w http.ResponseWriter, r *http.Request, status int, text string) {
	n := notice{Head: page.Head{Title: http.StatusText(status), Now: time.Now()}, Status: status, Text: text}
	if wantsJSON(r) {
		u.writeJSON(w, r, status, n.JSON())
		return
	}
	f := u.frameOf(r, n)
	f.Live, f.JSON = "", ""
	u.show(w, r, status, "notice", f)
}

// fail answers with the error of reading a page.
func (u *UI) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	if f := (page.Fault{}); errors.As(err, &f) {
		u.complain(w, r, f.Status, f.Text)
		return
	}
	u.log.WarnContext(r.Context(), "edda: ui: a page cannot be read", "path", r.URL.Path, "error", err)
	u.complain(w, r, http.StatusServiceUnavailable, textOf(err))
}

// unmigrated are the SQLSTATEs of a missing schema, table or column.
var unmigrated = map[string]bool{"42P01": true, "3F000": true, "42703": true, "42883": true}

// textOf returns an error for people. Only texts of Edda and of Postgres are shown: a driver's text may contain an
// address.
func textOf(err error) string {
	var (
		server *pgconn.PgError
		fault  page.Fault
	)
	switch {
	case errors.As(err, &fault):
		return fault.Text
	case errors.Is(err, version.ErrNotMigrated), errors.As(err, &server) && unmigrated[server.Code]:
		return "The schema is not migrated. Run edda migrate up as the role that owns it."
	case errors.Is(err, version.ErrTooNew):
		return "A newer version of Edda has changed the schema, and this program would misread it. Run a newer program."
	case errors.As(err, &server) && server.Code == "57014", errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Reading this page took longer than %v and was stopped.", readLimit)
	case errors.As(err, &server) && server.Code == "42501":
		return "The role of these pages lacks a right: " + server.Message +
			". edda migrate grants prints the statements that grant it."
	case errors.As(err, &server):
		return "Postgres reports: " + server.Message + " (" + server.Code + ")."
	}
	return "The database does not answer. The log of this program has the details."
}
