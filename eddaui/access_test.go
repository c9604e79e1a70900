package eddaui_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
)

// paths are addresses of every kind, including one without a page.
var paths = []string{
	"/", "/now", "/find", "/sagas", "/sagas/order", "/sagas/order/7", "/instance?saga=order&key=7", "/dead", "/dead/7",
	"/dead/groups/0123456789ab", "/messages/01a218db-0af9-7d5a-a12c-e067ff012d85", "/endpoints/orders", "/manifests",
	"/conversations/01a218db-0af9-7d5a-a12c-e067ff012d85", "/limits", "/border", "/processes", "/nothing/here",
	"/static/eddaui.css", "/now.json",
}

func TestNobodyMayActByDefault(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	for name, authorize := range map[string]func(*http.Request) (eddaui.Actor, error){
		"without Authorize": nil, "with the right to look": allow(eddaui.View | eddaui.Bodies),
	} {
		s := serve(t, pool, schema, eddaui.Options{Authorize: authorize})
		for _, path := range paths {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				a := s.do(method, path)
				refused := a.status == http.StatusForbidden || a.status == http.StatusMethodNotAllowed
				if !refused || method == http.MethodPost && !strings.HasPrefix(path, "/static/") &&
					a.status != http.StatusForbidden {
					t.Errorf("%s: %s %s is %d", name, method, path, a.status)
				}
			}
		}
	}
}

func TestOtherSitesMayNotAct(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Retry | eddaui.Admin)})
	if a := s.do(http.MethodPost, "/dead/7"); a.status != http.StatusNotFound {
		t.Errorf("a POST of somebody who may act is %d, want 404: there is nothing to do yet", a.status)
	}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		for _, path := range paths {
			if a := s.do(http.MethodPost, path, headers...); a.status != http.StatusForbidden {
				t.Errorf("POST %s with %s is %d", path, headers, a.status)
			}
		}
		if a := s.do(http.MethodGet, "/", headers...); a.status != http.StatusOK {
			t.Errorf("GET with %s is %d: a link may lead here", headers, a.status)
		}
	}
}

func TestWhoMayNotLookSeesNothing(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	for name, authorize := range map[string]func(*http.Request) (eddaui.Actor, error){
		"an error": func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Permissions: eddaui.View}, errors.New("secret reason")
		},
		"no right": allow(0), "another right": allow(eddaui.Bodies | eddaui.Retry),
	} {
		s := serve(t, pool, schema, eddaui.Options{Authorize: authorize})
		for _, path := range append(paths, "/?live=1") {
			if strings.HasPrefix(path, "/static/") {
				continue
			}
			if a := s.do(http.MethodGet, path); a.status != http.StatusForbidden || strings.Contains(a.body, "secret") {
				t.Errorf("%s: GET %s is %d: %s", name, path, a.status, a.body)
			}
		}
	}
}

// must are headers that every answer has.
var must = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	s := serve(t, pool, schema, eddaui.Options{})
	nobody := serve(t, pool, schema, eddaui.Options{Authorize: allow(0)})
	unready := serve(t, pool, "edda_is_not_here", eddaui.Options{})
	check := func(what string, a answer) {
		t.Helper()
		for name, value := range must {
			if a.header.Get(name) != value {
				t.Errorf("%s: the header %s is %q", what, name, a.header.Get(name))
			}
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept: %q", what, a.header.Get("Cache-Control"))
		}
		if a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", what)
		}
	}
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
			check(method+" "+path, s.do(method, path))
			check("refused "+method+" "+path, nobody.do(method, path))
		}
		check("cross-site "+path, s.do(http.MethodPost, path, "Sec-Fetch-Site", "cross-site"))
	}
	a := unready.do(http.MethodGet, "/")
	check("a schema that is not there", a)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "edda migrate up") {
		t.Errorf("a schema that is not there is %d: %s", a.status, mainOf(a.body))
	}
	check("as JSON", unready.do(http.MethodGet, "/now.json"))
}

func TestFilesMayBeKeptByTheirSum(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(0)}) // they are not secret
	page := serve(t, pool, schema, eddaui.Options{}).get("/")
	found := 0
	for _, m := range links.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "static/") {
			continue
		}
		found++
		a := s.do(http.MethodGet, strings.TrimPrefix(m[1], "."))
		if a.status != http.StatusOK || !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s is %d, %q", m[1], a.status, a.header.Get("Cache-Control"))
		}
	}
	if found != 4 {
		t.Errorf("the page loads %d files, want 4", found)
	}
	if a := s.do(http.MethodGet, "/static/eddaui.css?v=other"); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a file with another sum may be kept: %q", a.header.Get("Cache-Control"))
	}
}
