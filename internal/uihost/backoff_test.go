package uihost

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Whoever guesses has to wait, longer each time, also with the right password; others do not.
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
	for range freeGuesses - 1 {
		check("401", "ann", "wrong", "10.0.0.7")
	}
	check("200", "ann", "right", "10.0.0.7") // forgets them
	for range freeGuesses {
		check("401", "ann", "wrong", "10.0.0.7")
		check("401", "", "", "10.0.0.7") // a browser that has not asked yet guesses nothing
	}
	check("429 1", "ann", "right", "10.0.0.7")
	check("200", "bob", "right", "10.0.0.7")
	check("200", "ann", "right", "10.0.0.8")
	now = now.Add(time.Second)
	check("401", "ann", "wrong", "10.0.0.7")
	check("429 2", "ann", "right", "10.0.0.7")
	for range 20 {
		now = now.Add(mostPause)
		check("401", "ann", "wrong", "10.0.0.7")
	}
	check("429 60", "ann", "right", "10.0.0.7")
	now = now.Add(mostPause)
	check("200", "ann", "right", "10.0.0.7")
	for n := range freeGuesses { // names that nobody has are one
		check("401", fmt.Sprint("nobody", n), "x", "10.0.0.9")
	}
	check("429 1", "nobody", "x", "10.0.0.9")
}

// However many guess, few are remembered.
func TestGuessersAreForgotten(t *testing.T) {
	t.Parallel()
	now, b := time.Now(), newBackOff()
	b.now = func() time.Time { return now }
	from := netip.MustParseAddr("10.0.0.0")
	old := guesser{"ann", netip.MustParseAddr("10.9.9.9")}
	for range freeGuesses + 1 {
		b.failed(old)
	}
	now = now.Add(forgotten - time.Second)
	for range mostGuesser - 1 {
		b.failed(guesser{"", from})
		from = from.Next()
	}
	now = now.Add(2 * time.Second)
	b.failed(guesser{"", from})
	if n := len(b.wrong); n != mostGuesser || b.wrong[old].n != 0 {
		t.Errorf("%d are remembered, one of them %+v", n, b.wrong[old])
	}
	b.failed(guesser{"", from.Next()})
	if n := len(b.wrong); n != 1 {
		t.Errorf("%d are remembered, want the last one", n)
	}
}
