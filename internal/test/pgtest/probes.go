package pgtest

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Probes checks whether statements still reach rows by index or ctid after their table has grown since they were
// planned. A connection of the engine plans its statements on empty tables, in the first minute of an installation,
// and keeps those plans. The planner assumes ten pages for an empty table until a vacuum has found it empty, and then
// no pages.
type Probes struct {
	SQL        pg.Statements       // the statements of the package under test, as it sends them
	Statements map[string][]string // name to arguments, in the form for Explain; for ctids a query returns the text
	Settings   []string            // run first, for example "SET LOCAL enable_seqscan = off"
	Fill       string              // SQL that fills the tables, with :schema; they are never analysed
	MaxRows    int                 // the number of rows that one node of a plan may read
	// PlannedAnew means that the package has these planned on every call, see Kept, so that kept plans do not matter.
	PlannedAnew bool
	Unvacuumed  bool // Check skips tables that vacuum has found empty
}

// Kept returns the names of the statements with a WHERE whose plans a connection keeps after do.
func Kept(t *testing.T, pool *pgxpool.Pool, do func(conn *pgxpool.Conn)) (names []string) {
	t.Helper()
	conn, err := Direct(t, pool).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	do(conn)
	err = conn.QueryRow(t.Context(), `SELECT coalesce(array_agg(substring(statement FROM '^-- name: (\w+)')), '{}')
		FROM pg_prepared_statements WHERE statement ~ '^-- name: ' AND statement ~ '\mWHERE\M'`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Check plans each statement on the empty tables, then runs it on the full ones with the plan that the server keeps,
// and with a new one. Then it does the same with tables that vacuum has found empty.
func (p Probes) Check(t *testing.T, pool *pgxpool.Pool, schema pg.Schema) {
	t.Helper()
	var alone, vacuum string // an autovacuum would make the server plan the statements again
	owner := Pool(t)
	err := owner.QueryRow(t.Context(), `SELECT string_agg('ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)',
		';'), 'VACUUM ' || string_agg(name, ', ') FROM (SELECT c.oid::regclass::text AS name FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = $1) x`,
		schema.Name()).Scan(&alone, &vacuum)
	if err != nil {
		t.Fatal(err)
	}
	Exec(t, owner, alone)
	pool = Direct(t, pool)
	p.check(t, pool, schema, "empty")
	if p.Unvacuumed {
		return
	}
	for begun, tried := time.Now(), false; !tried; {
		emptied(t, owner, schema, vacuum)
		tried = p.check(t, pool, schema, "vacuumed while empty")
		if !tried && time.Since(begun) > pgdev.Patience(30*time.Second) {
			t.Fatal("the server planned the statements again each time")
		}
	}
}

// emptied runs vacuum until the empty tables have no pages. A table that is locked keeps the pages of the first fill.
func emptied(t *testing.T, owner *pgxpool.Pool, schema pg.Schema, vacuum string) {
	t.Helper()
	for begun, kept := time.Now(), 1; kept > 0; {
		if _, err := owner.Exec(t.Context(), vacuum); err != nil {
			t.Fatal(err)
		}
		err := owner.QueryRow(t.Context(), `SELECT count(*) FROM pg_class c
			JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = $1
			AND relpages > 0 AND reltuples = 0`, schema.Name()).Scan(&kept)
		if err != nil || kept > 0 && time.Since(begun) > pgdev.Patience(15*time.Second) {
			t.Fatalf("vacuum left %d empty tables their pages, %v", kept, err)
		}
	}
}

// check reports whether the server kept the plans of the empty tables. When other connections create and drop many
// tables, a connection may miss their invalidations, and then it plans all of its statements again.
func (p Probes) check(t *testing.T, pool *pgxpool.Pool, schema pg.Schema, state string) (kept bool) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := tx.Conn().DeallocateAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, asLiterals)
	p.prepare(t, tx)
	for _, setting := range append(p.Settings, "SET LOCAL plan_cache_mode = force_generic_plan") {
		exec(t, tx, setting)
	}
	plans := p.plans(t, tx, schema)
	exec(t, tx, schema.Render(p.Fill))
	kept = true
	if !p.PlannedAnew {
		p.explain(t, tx, schema, "prepared when "+state)
		kept = maps.Equal(plans, p.plans(t, tx, schema))
	}
	exec(t, tx, "SET LOCAL plan_cache_mode = force_custom_plan")
	p.explain(t, tx, schema, "planned anew when "+state)
	return kept
}

// plans returns the plan of each statement, with its costs.
func (p Probes) plans(t *testing.T, tx pgx.Tx, schema pg.Schema) map[string]string {
	t.Helper()
	plans := map[string]string{}
	for name, args := range p.Statements {
		sql, values := execute("EXPLAIN", name, p.arguments(t, tx, schema, args))
		rows, err := tx.Query(t.Context(), sql, values...)
		if err != nil {
			t.Fatalf("plan %s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("plan %s: %v", name, err)
		}
		plans[name] = strings.Join(lines, "\n")
	}
	return plans
}

func (p Probes) prepare(t *testing.T, tx pgx.Tx) {
	t.Helper()
	for name := range p.Statements {
		if _, err := tx.Prepare(t.Context(), name, p.SQL.Get(name)); err != nil {
			t.Fatalf("prepare %s: %v", name, err)
		}
	}
}

// explain refuses a plan that reads a table from end to end. The log of a failed test has all of them.
func (p Probes) explain(t *testing.T, tx pgx.Tx, schema pg.Schema, state string) {
	t.Helper()
	for name, args := range p.Statements {
		inner, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, scan := range Explain(t, inner, name, p.arguments(t, inner, schema, args)...) {
			if scan.Node == "Seq Scan" || scan.Rows+scan.Removed > p.MaxRows {
				t.Errorf("%s (%s) reads too much: %v", name, state, scan)
			}
			t.Logf("%s (%s): %v", name, state, scan)
		}
		if err := inner.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (p Probes) arguments(t *testing.T, tx pgx.Tx, schema pg.Schema, args []string) []string {
	t.Helper()
	var texts []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "SELECT ") {
			if err := tx.QueryRow(t.Context(), schema.Render(arg)).Scan(&arg); err != nil {
				t.Fatalf("%v\n%s", err, arg)
			}
		}
		texts = append(texts, arg)
	}
	return texts
}

func exec(t *testing.T, tx pgx.Tx, sql string) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}
