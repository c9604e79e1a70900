package uihost

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// After wrong passwords the next try has to wait, longer each time, even with the right password. Other names do not.
func TestGuessersHaveToWait(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("ann:right\nbob:right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := newAccess(Options{Listen: "127.0.0.1:0", Auth: "basic:" + file})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 27, 4, 0, 0, 0, time.UTC)
	a.slow.now = func() time.Time { return now }
	pages := a.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	try := func(name, password, from string) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.RemoteAddr = from + ":4711"; name != "" {
			r.SetBasicAuth(name, password)
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return strings.TrimSpace(fmt.Sprintf("%d %s", w.Code, w.Header().Get("Retry-After")))
	}
	check := func(want, name, password, from string) {
		t.Helper()
		if got := try(name, password, from); got != want {
			t.Errorf("%s with %q from %s is %s, want %s", name, password, from, got, want)
		}
	}
	for range 4 {
		check("401", "ann", "wrong", "10.0.0.7")
	}
	check("200", "ann", "right", "10.0.0.7") // removes the record
	for range 5 {
		check("401", "ann", "wrong", "10.0.0.7")
		check("401", "", "", "10.0.0.7") // a browser's first request, without a password, is not a guess
	}
	check("429 1", "ann", "right", "10.0.0.7")
	check("200", "bob", "right", "10.0.0.7")
	check("200", "ann", "right", "10.0.0.8")
	now = now.Add(time.Second)
	check("401", "ann", "wrong", "10.0.0.7")
	check("429 2", "ann", "right", "10.0.0.7")
	for range 20 {
		now = now.Add(time.Minute)
		check("401", "ann", "wrong", "10.0.0.7")
	}
	check("429 60", "ann", "right", "10.0.0.7")
	now = now.Add(time.Minute)
	check("200", "ann", "right", "10.0.0.7")
	for _, name := range []string{"ann", "nobody"} { // the answer must not reveal whether a name exists
		for range 5 {
			check("401", name, "x", "10.0.0.9")
		}
		check("429 1", name, "x", "10.0.0.9")
	}
	check("401", "no one", "x", "10.0.0.9")
	for n := range 5 { // of one site
		check("401", "ann", "x", fmt.Sprintf("[2001:db8::%d]", n))
	}
	check("429 1", "ann", "right", "[2001:db8::7]")
	check("200", "ann", "right", "[2001:db8:0:1::7]")
}

// However many guessers there are, few are remembered.
func TestGuessersAreForgotten(t *testing.T) {
	t.Parallel()
	now, b := time.Now(), newBackOff()
	b.now = func() time.Time { return now }
	next := 0
	crowd := func(n int) {
		for ; n > 0; n-- {
			next++
			b.failed(guesserOf(fmt.Sprint("nobody", next), "10.0.0.7:4711"))
		}
	}
	old, ann := guesserOf("ann", "10.9.9.9:4711"), guesserOf("ann", "10.9.9.8:4711")
	for range 6 {
		b.failed(old)
	}
	now = now.Add(15*time.Minute - time.Second)
	crowd(9_999)
	now = now.Add(2 * time.Second)
	for range 6 {
		b.failed(ann)
	}
	if n := len(b.wrong); n != 10_000 || b.wrong[old].n != 0 {
		t.Errorf("%d are remembered, one of them %+v", n, b.wrong[old])
	}
	crowd(30_000)
	if n := len(b.wrong); n > 10_000 || b.wait(ann) == 0 {
		t.Errorf("%d are remembered, and ann has to wait for %v", n, b.wait(ann))
	}
}
