package pgtest

import (
	"context"
	"crypto/rand"
	"maps"
	"regexp"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool returns a pool of at most ten connections that accept *pg.Array, like the engine's own.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return poolAs(t, pgdev.DSN(t), "", nil)
}

// PoolUnderTest returns a Pool for the code under test, see DSN.
func PoolUnderTest(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return poolAs(t, DSN(t), "", nil)
}

// Direct returns pool, or a pool without the PgBouncer if there is one: for a test that examines a session.
func Direct(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	if pgdev.Pooled() {
		return Pool(t)
	}
	return pool
}

// IfPooled returns pooled if there is a PgBouncer between the code under test and its server, else direct.
func IfPooled[T any](pooled, direct T) T {
	if pgdev.Pooled() {
		return pooled
	}
	return direct
}

// DSN returns the connection string of the shared server for the code under test, see pgdev.BouncerVariable.
func DSN(t testing.TB) string {
	t.Helper()
	return pgdev.PooledDSN(t, pgdev.DSN(t))
}

func poolAs(t testing.TB, dsn, role string, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("read the connection string: %v", err)
	}
	config.MaxConns = 10
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pg.RegisterArrays(conn.TypeMap())
		return nil
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if pgdev.Pooled() { // the connection does not have the number of the server's process
			c.RuntimeParams["application_name"] = rand.Text()
		}
		return nil
	}
	Become(config, role)
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("open a pool: %v", err)
	}
	t.Cleanup(func() { Close(t, pool) })
	return pool
}

// oddSettings may be set for a database or a role. Each changes the text form of values.
var oddSettings = map[string]string{
	"bytea_output": "escape", "DateStyle": "German", "IntervalStyle": "iso_8601", "extra_float_digits": "-15",
	"TimeZone": "Asia/Kathmandu",
}

// Migrated returns a schema of the test's own with all tables. It is dropped when the test ends.
func Migrated(t testing.TB, pool *pgxpool.Pool) pg.Schema {
	t.Helper()
	schema, err := pg.ParseSchema(pgdev.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	Migrate(t, pool, schema.Name())
	return schema
}

// Migrate creates all tables in an empty schema. It takes half the time of migrations.Up, which checks each migration
// and runs it in a transaction of its own: this runs the script for a DBA in one transaction, without the parts that
// only psql reads.
func Migrate(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	if err := runScript(t.Context(), pool, schema); err != nil {
		t.Fatalf("give schema %q its tables: %v", schema, err)
	}
}

func runScript(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	script, err := migrations.SQL(schema)
	if err == nil {
		_, err = pool.Exec(ctx, withoutPsql(script))
	}
	return err
}

var (
	psqlLine = regexp.MustCompile(`(?m)^\\.*$`)
	psqlEnd  = regexp.MustCompile(`(?m) \\gset$`)
)

// withoutPsql leaves out the conditions of a script: every migration is applied.
func withoutPsql(script string) string {
	return psqlEnd.ReplaceAllString(psqlLine.ReplaceAllString(script, ""), ";")
}

// Exec runs SQL in a READ COMMITTED transaction and returns how many rows its last statement changed. A test may
// change a row at the same moment as the engine: at a higher level, which the settings under test may set, either of
// the two would fail.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (rows int64) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := pgx.BeginTxFunc(ctx, pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		rows = tag.RowsAffected()
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return rows
}

// Database returns the results of Pool and Migrated. RoleVariable may set the pool's role, and pgdev.BouncerVariable
// may put the pool behind a PgBouncer.
func Database(t testing.TB) (*pgxpool.Pool, pg.Schema) {
	t.Helper()
	return database(t, nil)
}

// OddDatabase is Database in sessions with unusual settings. Values must be read there as they were written.
func OddDatabase(t testing.TB) (*pgxpool.Pool, pg.Schema) {
	t.Helper()
	return database(t, oddSettings)
}

func database(t testing.TB, settings map[string]string) (*pgxpool.Pool, pg.Schema) {
	t.Helper()
	owner := poolAs(t, pgdev.DSN(t), "", settings)
	schema := Migrated(t, owner)
	role := RoleUnderTest(t, owner, schema.Name())
	if role == "" && !pgdev.Pooled() {
		return owner, schema
	}
	if pgdev.Pooled() { // it refuses settings, and its sessions are odd
		settings = nil
	}
	return poolAs(t, DSN(t), role, settings), schema
}
