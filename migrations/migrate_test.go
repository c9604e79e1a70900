package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
)

// names are schemas that quoting must survive. Each test prefixes the name of its own schema.
var names = []string{``, `weird"x y`, `we'ird`, `back\slash`, `a -- b;`, `:schema`, `%s %I`, `Ünï`}

func TestUpUnderAnyName(t *testing.T) {
	t.Parallel()
	for _, suffix := range names {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			pool, schema := pgdev.Pool(t), named(t, suffix)
			for range 2 { // the second run has nothing to do
				if err := migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name()}); err != nil {
					t.Fatal(err)
				}
				wantComplete(t, pool, schema)
			}
		})
	}
}

// named is a schema whose name ends with suffix, dropped when the test ends.
func named(t *testing.T, suffix string) pg.Schema {
	t.Helper()
	pool := pgdev.Pool(t)
	schema, err := pg.ParseSchema(pgdev.Schema(t) + suffix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		drop := schema.Render("DROP SCHEMA IF EXISTS :schema CASCADE")
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), drop); err != nil {
			t.Error(err)
		}
	})
	return schema
}

func wantComplete(t *testing.T, pool *pgxpool.Pool, schema pg.Schema) {
	t.Helper()
	if err := version.Check(t.Context(), pool, schema); err != nil {
		t.Errorf("after Up: %v", err)
	}
	status, err := migrations.Status(t.Context(), pool, migrations.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	if len(status) != migrations.Version {
		t.Errorf("status has %d migrations, want %d", len(status), migrations.Version)
	}
	for i, m := range status {
		if m.Version != int64(i+1) || m.Applied.IsZero() || m.Unknown {
			t.Errorf("migration %d: %+v", i+1, m)
		}
	}
}

// Each of several processes reports the migrations that it has applied, and no others.
func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	schema := named(t, "")
	var mu sync.Mutex
	var applied []int64 // guarded by mu
	note := func(m migrations.Migration) {
		mu.Lock()
		defer mu.Unlock()
		applied = append(applied, m.Version)
	}
	var together sync.WaitGroup
	for range 4 {
		pool := pgdev.Pool(t) // each process has its own pool
		together.Go(func() {
			options := migrations.Options{Schema: schema.Name(), Applied: note}
			if err := migrations.Up(t.Context(), pool, options); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	wantComplete(t, pgdev.Pool(t), schema)
	slices.Sort(applied)
	if len(applied) != migrations.Version || len(slices.Compact(applied)) != migrations.Version {
		t.Errorf("four calls of Up have applied %v, want 1 to %d, each once", applied, migrations.Version)
	}
}

// A database may default to serializable and read-only transactions; a pool may have one connection.
func TestUpUnderOddSettings(t *testing.T) {
	t.Parallel()
	schema := named(t, "")
	var together sync.WaitGroup
	for range 4 {
		config, err := pgxpool.ParseConfig(pgdev.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 1
		for name, value := range map[string]string{
			"default_transaction_isolation": "serializable",
			"default_transaction_read_only": "on",
			"DateStyle":                     "German",
			"TimeZone":                      "Asia/Kathmandu",
		} {
			config.ConnConfig.RuntimeParams[name] = value
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		together.Go(func() {
			if err := migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name()}); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	wantComplete(t, pgdev.Pool(t), schema)
}

func TestStatusOfNothing(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	status, err := migrations.Status(t.Context(), pool, migrations.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range status {
		if !m.Applied.IsZero() {
			t.Errorf("applied to a schema that is not there: %+v", m)
		}
	}
	if len(status) != migrations.Version {
		t.Errorf("status has %d migrations, want %d", len(status), migrations.Version)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const known = migrations.Version
	numbers := strings.NewReplacer("{known}", strconv.Itoa(known), "{known-1}", strconv.Itoa(known-1),
		"{known+1}", strconv.Itoa(known+1), "{known+2}", strconv.Itoa(known+2))
	for _, c := range []struct {
		name, change string // change is made to a complete schema
		want         error
		says         string
	}{
		{"complete", "", nil, ""},
		{"no schema", "DROP SCHEMA :schema CASCADE", migrations.ErrNotMigrated, "there is no schema"},
		{"nothing in it", "DROP TABLE :schema.migration", migrations.ErrNotMigrated, `call migrations.Up`},
		{"older", "DELETE FROM :schema.migration WHERE version = {known}", migrations.ErrNotMigrated,
			"has {known-1} of the {known} migrations"},
		{"a gap", "DELETE FROM :schema.migration WHERE version = 2", migrations.ErrNotMigrated,
			"has {known-1} of the {known} migrations"},
		{"newer", "INSERT INTO :schema.migration VALUES ({known+1}, 'more', false)", nil, ""},
		{"newer and breaking", "INSERT INTO :schema.migration VALUES ({known+1}, 'less', true), ({known+2}, " +
			"'more', false)",
			migrations.ErrTooNew, "is at version {known+2}, and its version {known+1} refuses programs up to " +
				"schema version {known}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool, schema := pgdev.Pool(t), named(t, "")
			if err := migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name()}); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), schema.Render(numbers.Replace(c.change))); err != nil {
				t.Fatal(err)
			}
			err := version.Check(t.Context(), pool, schema)
			if says := numbers.Replace(c.says); !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("after %q\ngot  %v\nwant %v saying %q", c.change, err, c.want, says)
			}
		})
	}
}

// An older program changes nothing in a newer schema, and its status shows the unknown migrations.
func TestUpLeavesANewerSchemaAlone(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	options := migrations.Options{Schema: schema.Name()}
	if err := migrations.Up(t.Context(), pool, options); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), schema.Render(
		"INSERT INTO :schema.migration VALUES (99, 'future', true)")); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool, options); err != nil {
		t.Errorf("Up on a newer schema: %v", err)
	}
	status, err := migrations.Status(t.Context(), pool, options)
	if err != nil {
		t.Fatal(err)
	}
	last := status[len(status)-1]
	if last.Version != 99 || !last.Unknown || !last.Breaking || last.Name != "future" {
		t.Errorf("newest is %+v, want the unknown, breaking migration 99", last)
	}
}

// A migration that fails leaves no trace, and Up continues from there when the cause is removed.
func TestUpAfterAFailure(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	options := migrations.Options{Schema: schema.Name()}
	if _, err := pool.Exec(t.Context(), schema.Render(
		"CREATE SCHEMA :schema; CREATE TABLE :schema.dead_letter ()")); err != nil {
		t.Fatal(err)
	}
	err := migrations.Up(t.Context(), pool, options)
	if pgerr.Code(err) != "42P07" || !strings.Contains(err.Error(), "apply migration 4 (dead_letters)") {
		t.Fatalf("Up over a table that is in the way: %v", err)
	}
	if err := version.Check(t.Context(), pool, schema); !errors.Is(err, migrations.ErrNotMigrated) {
		t.Fatalf("after a failed Up: %v", err)
	}
	if _, err := pool.Exec(t.Context(), schema.Render("DROP TABLE :schema.dead_letter")); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool, options); err != nil {
		t.Fatal(err)
	}
	wantComplete(t, pool, schema)
}

// A DBA creates an empty schema for a role that may create nothing else in the database. A third role may only read,
// and gets a clear error if it may not even do that.
func TestRights(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	owner, stranger := schema.Name()+"_owner", schema.Name()+"_stranger"
	asAdmin := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatal(err)
		}
	}
	asAdmin(`CREATE ROLE ` + quote(owner) + ` LOGIN; CREATE ROLE ` + quote(stranger) + ` LOGIN;
		CREATE SCHEMA ` + quote(schema.Name()) + ` AUTHORIZATION ` + quote(owner))
	t.Cleanup(func() {
		asAdmin(`DROP OWNED BY ` + quote(owner) + ` CASCADE; DROP ROLE ` + quote(owner) + `, ` + quote(stranger))
	})

	ownersPool := poolAs(t, owner)
	for range 2 {
		if err := migrations.Up(t.Context(), ownersPool, migrations.Options{Schema: schema.Name()}); err != nil {
			t.Fatalf("as the schema's owner: %v", err)
		}
	}
	wantComplete(t, ownersPool, schema)
	for _, of := range []string{schema.Name(), named(t, "_none").Name()} {
		err := migrations.Up(t.Context(), poolAs(t, stranger), migrations.Options{Schema: of})
		if pgerr.ClassOf(err) != pgerr.Denied || !strings.Contains(err.Error(), `run "edda migrate up"`) {
			t.Errorf("a stranger migrates: %v", err)
		}
	}
	err := version.Check(t.Context(), poolAs(t, stranger), schema)
	if pgerr.ClassOf(err) != pgerr.Denied || !strings.Contains(err.Error(), "the role needs USAGE") {
		t.Errorf("as a stranger: %v", err)
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func poolAs(t *testing.T, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET ROLE "+quote(role))
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
