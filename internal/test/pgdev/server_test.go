package pgdev

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPrivateServerRestartsOnItsPortAndLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Start(ctx, Options{Private: true, Durable: true,
		Settings: map[string]string{"max_connections": "33", "application_name": `it's a \ test`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	dsn := s.DSN()
	expect := func(query, want string) {
		t.Helper()
		if got := queryString(t, s.DSN(), query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	expect("SHOW fsync", "on")
	expect("SHOW max_connections", "33")
	expect("SELECT reset_val FROM pg_settings WHERE name = 'application_name'", `it's a \ test`)
	expect("CREATE TABLE kept AS SELECT 'a row' AS it; ", "")

	for _, mode := range []Mode{Fast, Immediate} {
		before := queryString(t, dsn, "SELECT pg_postmaster_start_time()::text")
		if err := s.Restart(ctx, mode); err != nil {
			t.Fatalf("restart in mode %d: %v", mode, err)
		}
		if after := queryString(t, dsn, "SELECT pg_postmaster_start_time()::text"); after == before {
			t.Errorf("mode %d: the server did not restart", mode)
		}
		expect("SELECT it FROM kept", "a row")
	}
	if s.DSN() != dsn {
		t.Errorf("the restarted server is at %s, want %s", s.DSN(), dsn)
	}

	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.home.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the server's directory is still there: %v", err)
	}
	if err := s.Restart(ctx, Fast); err == nil {
		t.Error("a stopped server restarted, want an error")
	}
}

func TestServerHasTheICULocaleAndTheDefaultsAskedFor(t *testing.T) {
	t.Setenv(LocaleVariable, "en-US")
	t.Setenv(DefaultsVariable, "default_transaction_isolation=repeatable read; search_path = it's")
	s, err := Start(t.Context(), Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	for query, want := range map[string]string{
		"SELECT string_agg(key, '' ORDER BY key) FROM unnest('{b,B,a,A}'::text[]) u(key)": "aAbB",
		"SHOW transaction_isolation": "repeatable read",
		"SHOW search_path":           `"it's"`,
	} {
		if got := queryString(t, s.DSN(), query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	t.Setenv(DefaultsVariable, "search_path")
	if s, err := Start(t.Context(), Options{Private: true}); err == nil {
		t.Error("a default without a value was taken", s.Stop())
	}
	t.Setenv(DefaultsVariable, "")
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), LocaleVariable) {
		t.Errorf("a given server cannot have another locale: %v", err)
	}
}

// queryString runs a query on a connection of its own and returns the only value, or "" if there is no row.
func queryString(t *testing.T, dsn, query string) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience(20*time.Second))
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&value)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// Options.Env is in the environment of the server's processes, even after a restart.
func TestEnvironmentOfTheServer(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Private: true, Env: []string{"EDDA_PGDEV_TEST=given"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // a test of its own watches over Stop
	for range 2 {
		conn, err := pgx.Connect(t.Context(), s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		value := ""
		for _, sql := range []string{"CREATE TEMP TABLE said (word text)", "COPY said FROM PROGRAM 'printenv " +
			"EDDA_PGDEV_TEST'"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.QueryRow(t.Context(), "SELECT word FROM said").Scan(&value); err != nil || value != "given" {
			t.Errorf("%q, %v", value, err)
		}
		_ = conn.Close(t.Context())
		if err := s.Restart(t.Context(), Immediate); err != nil {
			t.Fatal(err)
		}
	}
}
