package pgdev

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// icuLocale sorts a before B, as people do. A database of a server that initdb made with --no-locale sorts bytes, and
// B before a.
const icuLocale = "en-US"

// ICUDSN returns the connection string of a new database on the shared server. It sorts text as people do if a
// statement names no collation. The server must be a Postgres 15 or newer. When the test ends, the database is
// dropped with all schemas in it.
func ICUDSN(t testing.TB) string {
	t.Helper()
	// template1 has a collation of its own, which a copy of it keeps.
	return newDatabase(t, " TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE '"+icuLocale+"'")
}

// Database returns the connection string of a new database on the shared server. When the test ends, it is dropped
// with all schemas in it.
func Database(t testing.TB) string {
	t.Helper()
	return newDatabase(t, "")
}

func newDatabase(t testing.TB, options string) string {
	t.Helper()
	shared := DSN(t)
	name := schemaName(t.Name())
	quoted := pgx.Identifier{name}.Sanitize()
	admin(t.Context(), t, shared, "CREATE DATABASE "+quoted+options)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { admin(ctx, t, shared, "DROP DATABASE "+quoted+" WITH (FORCE)") })
	to, err := url.Parse(shared)
	if err != nil {
		t.Fatalf("pgdev: the connection string of the server is no URL: %v", err)
	}
	to.Path = "/" + name
	return to.String()
}

// admin runs one statement on a connection of its own.
func admin(ctx context.Context, t testing.TB, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
	}
	if err != nil {
		t.Fatalf("pgdev: %s: %v", sql, err)
	}
}
