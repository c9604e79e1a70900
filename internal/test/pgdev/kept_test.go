package pgdev

import (
	"crypto/rand"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // restores it
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// A kept server has its data and its port when it starts again, and processes share it.
func TestKeptServer(t *testing.T) {
	unset(t, "DATABASE_URL")
	unset(t, LocaleVariable)
	unset(t, DefaultsVariable)
	name := "test-" + strings.ToLower(rand.Text()[:8])
	keep := func() *Server {
		t.Helper()
		s, err := Keep(t.Context(), name, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// several at the same moment start one server
	servers := make([]*Server, 3)
	var all sync.WaitGroup
	for n := range servers {
		all.Go(func() {
			var err error
			if servers[n], err = Keep(t.Context(), name, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	dir := servers[0].home.dir
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	began := queryString(t, servers[0].DSN(), "SELECT pg_postmaster_start_time()::text")
	queryString(t, servers[0].DSN(), "CREATE TABLE kept AS SELECT 'a row' AS it")
	for _, s := range servers {
		if at := queryString(t, s.DSN(), "SELECT pg_postmaster_start_time()::text"); at != began {
			t.Errorf("there are two servers, of %s and %s", at, began)
		}
	}
	dsn := servers[0].DSN()
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	again := keep()
	defer func() { _ = again.Stop() }()
	if got := queryString(t, again.DSN(), "SELECT it FROM kept"); got != "a row" || again.DSN() != dsn {
		t.Errorf("%q at %s, want a row at %s", got, again.DSN(), dsn)
	}
	if at := queryString(t, again.DSN(), "SELECT pg_postmaster_start_time()::text"); at == began {
		t.Error("the server did not end")
	}
	// a joined server is started again after the process that had started it has ended
	joined := keep()
	if again.Joined() || !joined.Joined() {
		t.Errorf("joined: %v and %v, want the second", again.Joined(), joined.Joined())
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	next, err := joined.Outlive(t.Context(), &said)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Stop() }()
	if got := queryString(t, dsn, "SELECT it FROM kept"); got != "a row" || next.Joined() ||
		!strings.Contains(said.String(), "Postgres "+name+" has ended") {
		t.Errorf("%q at %s, joined: %v, %q", got, dsn, next.Joined(), &said)
	}
}

func TestNameOfAKeptServer(t *testing.T) {
	unset(t, "DATABASE_URL")
	for _, name := range []string{"", "../shop", "Shop", strings.Repeat("x", mostName+1)} {
		if _, err := Keep(t.Context(), name, io.Discard); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
}
