package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RoleVariable, set to "runtime", makes tests run the code under test as a role that may use a schema and create
// nothing in it. The preparations of a test still run as the owner.
const RoleVariable = "EDDA_TEST_ROLE"

// AsRuntime reports whether RoleVariable is set to "runtime".
func AsRuntime() bool { return os.Getenv(RoleVariable) == "runtime" }

// RoleUnderTest returns Runtime's role if RoleVariable requests it, or "": then the tests run as the owner.
func RoleUnderTest(t testing.TB, owner *pgxpool.Pool, schema string) (role string) {
	t.Helper()
	if !AsRuntime() {
		return ""
	}
	return Runtime(t, owner, schema)
}

// Runtime creates a role for a migrated schema, with the rights of docs/operate/roles.md. It is dropped when the test
// ends.
func Runtime(t testing.TB, owner *pgxpool.Pool, schema string) (role string) {
	t.Helper()
	role = schema + "_rt"
	makeRole(t, owner, schema, migrations.Roles{Runtime: role})
	return role
}

// Sender is Runtime for a role that only sends.
func Sender(t testing.TB, owner *pgxpool.Pool, schema string) (role string) {
	t.Helper()
	role = schema + "_tx"
	makeRole(t, owner, schema, migrations.Roles{Sender: role})
	return role
}

// Reader creates a role that may read the tables of a schema.
func Reader(t testing.TB, owner *pgxpool.Pool, schema string) (role string) {
	t.Helper()
	role = schema + "_reader"
	makeRole(t, owner, schema, migrations.Roles{Reader: role})
	return role
}

// makeRole creates the one role that is named in roles.
func makeRole(t testing.TB, owner *pgxpool.Pool, schema string, roles migrations.Roles) {
	t.Helper()
	role := roles.Runtime + roles.Sender + roles.Reader
	script, err := migrations.Grants(schema, roles)
	if err != nil {
		t.Fatal(err)
	}
	name := pgx.Identifier{role}.Sanitize()
	ctx, dsn := context.WithoutCancel(t.Context()), owner.Config().ConnString()
	t.Cleanup(func() {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			defer conn.Close(ctx)
			_, err = conn.Exec(ctx, "DROP OWNED BY "+name+"; DROP ROLE "+name)
		}
		if err != nil {
			t.Errorf("drop role %s: %v", role, err)
		}
	})
	for _, sql := range []string{"CREATE ROLE " + name, script} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatalf("make role %s: %v", role, err)
		}
	}
}

// Become sets the role of every connection of config, with a search path that finds nothing. "" changes nothing.
func Become(config *pgxpool.Config, role string) {
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
		config.ConnConfig.RuntimeParams["search_path"] = ""
	}
}
