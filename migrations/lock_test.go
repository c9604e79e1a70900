package migrations_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
)

// report makes a schema as it was before migration 17, and reads a table that this migration changes, in a
// transaction that stays open.
func report(t *testing.T, pool *pgxpool.Pool, schema pg.Schema) pgx.Tx {
	t.Helper()
	until, _, found := strings.Cut(script(t, schema.Name()),
		"SELECT NOT EXISTS (SELECT FROM "+quote(schema.Name())+".migration WHERE version = 17)")
	if out, err := psql(t, until+"COMMIT;\n"); err != nil || !found {
		t.Fatalf("%v\n%s", err, out)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), schema.Render("SET application_name = 'the report'; "+
		"TABLE :schema.saga_counter")); err != nil {
		t.Fatal(err)
	}
	return tx
}

// logs is a handler of slog that sends the messages to a channel.
type logs chan string

func (logs) Enabled(context.Context, slog.Level) bool { return true }
func (l logs) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l logs) WithGroup(string) slog.Handler          { return l }

func (l logs) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l <- text
	return nil
}

// A migration that waits for a lock makes each later statement on the table wait. So it waits only seconds, logs
// which session holds the lock, and pauses before the next try so that other sessions can use the table.
func TestUpLetsOthersPassWhileItWaits(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	first := report(t, pool, schema)
	log, ended := make(logs, 1000), make(chan error, 1)
	go func() {
		ended <- migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name(), Logger: slog.New(log)})
	}()
	select {
	case said := <-log:
		session := fmt.Sprint("session ", first.Conn().PgConn().PID(), " of ")
		for _, part := range []string{"edda: a migration waits for a lock", session, "the report", "saga_counter"} {
			if !strings.Contains(said, part) {
				t.Errorf("the log says %q, without %q", said, part)
			}
		}
	case <-time.After(pgdev.Patience(20 * time.Second)):
		t.Error("a migration waits for a reader, and the log does not say so")
	}
	within, cancel := context.WithTimeout(t.Context(), pgdev.Patience(10*time.Second))
	defer cancel()
	if _, err := pool.Exec(within, schema.Render("TABLE :schema.saga_counter")); err != nil {
		t.Errorf("another reader, while the migration waits for the first: %v", err)
	}
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantComplete(t, pool, schema)
}

// The script fails where Up would try again.
func TestScriptDoesNotWaitForALock(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), named(t, "")
	first := report(t, pool, schema)
	if _, err := first.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '20s'"); err != nil {
		t.Fatal(err)
	}
	if out, err := psql(t, script(t, schema.Name())); err == nil || !strings.Contains(out+err.Error(),
		"lock timeout") {
		t.Errorf("the script beside a long read: %v\n%s", err, out)
	}
}

// hostileSchema has functions, and two operators, that the migrations would call in place of those of Postgres.
func hostileSchema(t *testing.T, admin *pgxpool.Pool) pg.Schema {
	t.Helper()
	hostile := named(t, "_hostile")
	var files strings.Builder
	for _, m := range migrations.All() {
		files.WriteString(m.Text)
	}
	if _, err := admin.Exec(t.Context(), hostile.Render(`CREATE SCHEMA :schema;
		CREATE OPERATOR :schema.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.textregexeq);
		CREATE OPERATOR :schema.<= (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_catalog.int4le)`)); err != nil {
		t.Fatal(err)
	}
	rows, err := admin.Query(t.Context(), `SELECT format(
			'CREATE FUNCTION :schema.%I(%s) RETURNS %s LANGUAGE sql %s AS ''SELECT pg_catalog.%1$I(%5$s)''', proname,
			pg_get_function_identity_arguments(p.oid), prorettype::regtype,
			CASE provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
			(SELECT string_agg('$' || n, ', ') FROM generate_series(1, pronargs) n))
		FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset
			AND provariadic = 0 AND $1 ~ ('[[:<:]]' || proname || '[(]') AND NOT EXISTS (SELECT FROM pg_type y
				WHERE y.typtype = 'p' AND (y.oid = ANY (proargtypes) OR y.oid = prorettype))`, files.String())
	if err != nil {
		t.Fatal(err)
	}
	made, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(made) < 20 {
		t.Fatalf("%d functions have namesakes, %v", len(made), err)
	}
	if _, err := admin.Exec(t.Context(), hostile.Render(strings.Join(made, ";\n"))); err != nil {
		t.Fatal(err)
	}
	return hostile
}

// Tables refer to the functions and operators of Postgres, even if an earlier schema in the session's search_path has
// the same names: they would refer to others permanently.
func TestTablesKeepNoFunctionOfTheSearchPath(t *testing.T) {
	t.Parallel()
	admin := pgdev.Pool(t)
	hostile := hostileSchema(t, admin)
	config := admin.Config()
	config.ConnConfig.RuntimeParams["search_path"] = quote(hostile.Name()) + ", pg_catalog"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, migrated := range []func(schema string) error{
		func(schema string) error { return migrations.Up(t.Context(), pool, migrations.Options{Schema: schema}) },
		func(schema string) error {
			path := config.ConnConfig.RuntimeParams["search_path"]
			_, err := psql(t, "SET search_path = "+path+";\n"+script(t, schema))
			return err
		},
	} {
		schema := named(t, "")
		if err := migrated(schema.Name()); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), schema.Render("SELECT :schema.create_queue('orders')")); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := admin.Query(t.Context(), `SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
			|| ' uses ' || pg_describe_object(d.refclassid, d.refobjid, 0)
		FROM pg_depend d WHERE d.deptype = 'n' AND d.refobjid IN (
			SELECT oid FROM pg_proc WHERE pronamespace = $1::text::regnamespace
			UNION ALL SELECT oid FROM pg_operator WHERE oprnamespace = $1::text::regnamespace)`, quote(hostile.Name()))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(bound) > 0 {
		t.Errorf("%v; %d are bound to functions of another schema:\n%s", err, len(bound), strings.Join(bound, "\n"))
	}
}
