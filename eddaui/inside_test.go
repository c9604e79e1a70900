package eddaui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/demo/big"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/live"
)

// An action runs only if the request is a POST from this site, and its actor has the right.
func TestActionsNeedTheirRight(t *testing.T) {
	t.Parallel()
	may, did := View, 0
	u, err := New(pgdev.Pool(t), Options{Schema: pgdev.Schema(t),
		Authorize: func(*http.Request) (Actor, error) { return Actor{Permissions: may}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	retry := action{"/dead/{number}/retry", []act.Right{act.Retry},
		func(http.ResponseWriter, *http.Request) { did++ }}
	handler := u.routes([]action{retry})
	do := func(method, site string) int {
		r := httptest.NewRequest(method, "http://edda.example/dead/7/retry", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, may = range []Permission{0, View, View | Bodies, View | anyOf(anything)&^Retry, Retry} {
		if code := do(http.MethodPost, "same-origin"); code != http.StatusForbidden {
			t.Errorf("with the rights %b it is %d", may, code)
		}
	}
	may = View | Retry
	if code := do(http.MethodPost, "cross-site"); code != http.StatusForbidden {
		t.Errorf("from another site it is %d", code)
	}
	if code := do(http.MethodGet, "same-origin"); code != http.StatusNotFound {
		t.Errorf("by GET it is %d", code)
	}
	if did != 0 {
		t.Errorf("it was done %d times by those who may not", did)
	}
	if code := do(http.MethodPost, "same-origin"); code != http.StatusOK || did != 1 {
		t.Errorf("with its right it is %d, and was done %d times", code, did)
	}
}

// The connections of pages can neither write nor read for long, whatever a page requests.
func TestPagesCanOnlyRead(t *testing.T) {
	t.Parallel()
	u, err := New(pgdev.Pool(t), Options{Schema: pgdev.Schema(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	for setting, want := range map[string]string{
		"default_transaction_read_only": "on", "statement_timeout": "10s", "application_name": "edda ui",
	} {
		var got string
		if err := u.source.Pool.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil ||
			got != want {
			t.Errorf("%s is %q, %v, want %q", setting, got, err, want)
		}
	}
	if n := u.source.Pool.Config().MaxConns; n != readers {
		t.Errorf("pages may take %d connections", n)
	}
	if _, err := u.source.Pool.Exec(t.Context(), "CREATE TABLE never (n int)"); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		t.Errorf("a table was made, or not refused for the reason: %v", err)
	}
}

// A slow page is read seldom, and an error is not cached.
func TestSomePagesRest(t *testing.T) {
	t.Parallel()
	reads, fails := 0, errors.New("gone")
	read := func(context.Context) ([]live.Fragment, error) {
		if reads++; reads == 1 {
			return nil, fails
		}
		return []live.Fragment{{ID: "a"}}, nil
	}
	for rests, want := range map[time.Duration]int{time.Hour: 2, 0: 4} {
		reads = 0
		rested := resting(read, rests)
		if _, err := rested(t.Context()); !errors.Is(err, fails) {
			t.Errorf("the error is %v", err)
		}
		for range 3 {
			if all, err := rested(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("%v, %v", all, err)
			}
		}
		if reads != want {
			t.Errorf("with a rest of %v it was read %d times, want %d", rests, reads, want)
		}
	}
	if rests["database"] == 0 || rests["map"] == 0 {
		t.Error("a page that takes a long look does not rest")
	}
}

func TestTheScriptIsSmall(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"eddaui.js": 10 << 10, "idiomorph.min.js": 12 << 10,
		"eddaui.css": 16 << 10} {
		text, err := staticFiles.ReadFile("static/" + name)
		if err != nil || len(text) > most {
			t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
	}
	for _, file := range []string{"layout", "parts", "instance", "message"} {
		text, err := htmlFiles.ReadFile("html/" + file + ".html")
		if err != nil || strings.Contains(string(text), "style=") || strings.Contains(string(text), " on") &&
			strings.Contains(string(text), `onclick=`) {
			t.Errorf("%s has a style or a script in it, which the policy forbids: %v", file, err)
		}
	}
}

func TestIdiomorphIsTheOneThatIsPinned(t *testing.T) {
	t.Parallel()
	l, err := newLook("")
	if err != nil {
		t.Fatal(err)
	}
	if sum := l.sums["static/idiomorph.min.js"]; sum != pinnedIdiomorph {
		t.Errorf("idiomorph has the sum %s, want %s of version 0.8.0", sum, pinnedIdiomorph)
	}
}

// pinnedIdiomorph is the beginning of the SHA-256 of idiomorph 0.8.0, dist/idiomorph.min.js.
const pinnedIdiomorph = "4cbd535caf7663a5"

func TestNoFaultShowsWhatADriverSays(t *testing.T) {
	t.Parallel()
	text := textOf(fmt.Errorf("connect to db.internal:5432 as admin: %w", errors.New("connection refused")))
	if strings.Contains(text, "db.internal") {
		t.Errorf("the text is %q", text)
	}
}

// A page that package big does not measure has no bound on its cost.
func TestEachPageIsMeasured(t *testing.T) {
	t.Parallel()
	asked := http.NewServeMux()
	for _, p := range pages {
		asked.HandleFunc("GET "+p.pattern, func(http.ResponseWriter, *http.Request) {})
	}
	measured := map[string]bool{}
	for _, p := range (&big.World{Size: big.Large}).Pages() {
		_, pattern := asked.Handler(httptest.NewRequest(http.MethodGet, "http://edda.example"+p.Path, nil))
		measured[pattern] = true
	}
	for _, p := range pages {
		if !measured["GET "+p.pattern] {
			t.Errorf("no page of big.World.Pages is of %s", p.pattern)
		}
	}
}
