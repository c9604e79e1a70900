package bus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// engineQueue returns the queue of one endpoint as the engine has it.
func (w *world) engineQueue(endpoint string) *queue.Queue {
	w.t.Helper()
	routes, err := queue.NewRouter(pg.Committed(w.owner), w.parsed(), nil).Get(w.t.Context(), w.owner)
	if err != nil {
		w.t.Fatal(err)
	}
	return routes.Endpoints[endpoint]
}

// A statement with a misspelt column is found at the first message of its kind; an unused statement is never found.
func TestStatementsPrepareAndAreUsed(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var files []string
	for _, pattern := range []string{"*.go", "../internal/*/*/*.go", "../outbox/*.go", "../operate/*.go",
		"../operate/*/*.go", "../history/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	used := map[string]bool{}
	use := regexp.MustCompile(`(?:Get\(|SQL\(|To\((?:r\.)?to, )"([a-z_]+)"\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range use.FindAllSubmatch(text, -1) {
			used[string(found[1])] = used[string(found[1])] || !strings.HasSuffix(file, "_test.go")
		}
	}
	conn, table := w.begin().Conn(), strings.Replace(w.queue("listener"), "edda.", ":schema.", 1)
	const queue = "../internal/store/queue/"
	for _, file := range []string{"statements.sql", queue + "transaction.sql", queue + "take.sql", queue + "insert.sql",
		queue + "claim.sql", queue + "lanes.sql", queue + "look.sql", queue + "routes.sql",
		"../internal/engine/membership/membership.sql", "../operate/operate.sql"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.NewReplacer(":queue", table, ":target", table).Replace(string(text))
		for name, sql := range pg.Load(named, w.parsed()) {
			if _, err := conn.Prepare(t.Context(), file+" "+name, sql); err != nil {
				t.Errorf("prepare %s: %v", name, err)
			}
			if !used[name] {
				t.Errorf("nobody uses %s", name)
			}
		}
	}
}

// A connection plans its statements in the first minute of an installation, on empty tables, and keeps the plans: a
// take of 300,000 rows read them all and sorted them, 112 ms in place of 0.06. So does every later connection on a
// queue that vacuum has found empty, which is the usual state of most queues: there the planner estimates no row, so
// that reading the whole index seems as cheap as a probe for each key.
func TestPlansMadeOnEmptyQueuesServeFullOnes(t *testing.T) {
	for name, vacuumed := range map[string]bool{"never vacuumed": false, "vacuumed": true} {
		t.Run(name, func(t *testing.T) { plansMadeOnAnEmptyQueue(t, vacuumed) })
	}
}

func plansMadeOnAnEmptyQueue(t *testing.T, vacuumed bool) {
	w := newWorld(t, bus.Options{})
	w.listener()
	table := w.sql(w.queue("listener"))
	if vacuumed { // the table keeps its pages, without rows, and the planner uses both numbers
		w.do(w.session("vacuum"), `INSERT INTO `+table+` (due, id, kind, header, body)
			SELECT now(), gen_random_uuid(), 'k', '{}', '{}' FROM generate_series(1, 1000)`,
			`DELETE FROM `+table, `VACUUM `+table)
	}
	tx := w.begin()
	listener := w.engineQueue("listener")
	due := `{2026-01-01 00:00:07+00}`
	ids := `{00000000-0000-0000-0000-000000000007,00000000-0000-0000-0000-000000000008}`
	dues := `{2026-01-01 00:00:07+00,2026-01-01 00:00:08+00}`
	nobody := "00000000-0000-0000-0000-000000000000"
	explained := map[string]struct {
		empty, full []string
		most        int // rows that one node may read
	}{
		"take": {empty: []string{"10", "-infinity", nobody, "1000"},
			full: []string{"10", "-infinity", nobody, "1000"}, most: 10},
		"take_permitted": {empty: []string{"10", "-infinity", nobody, "1000"},
			full: []string{"10", "-infinity", nobody, "1000"}, most: 10},
		"read_large": {empty: []string{dues, ids}, full: []string{dues, ids}, most: 2},
		"next_due":   {empty: []string{"now"}, full: []string{"now"}, most: 1},
		"relay_look": {empty: []string{"10", "2026-01-01 01:00:00+00", nobody, "1000"},
			full: []string{"10", "2026-01-01 01:00:00+00", nobody, "1000"}, most: 10},
		"insert": {empty: []string{"{}", "{}", "{}", "{}", "{}"},
			full: []string{"{NULL}", "{" + nobody + "}", "{k}", `{"{}"}`, `{"{}"}`}, most: 1},
		"insert_in_order": {empty: []string{"{}", "{}", "{}", "{}"},
			full: []string{"{" + nobody + "}", "{k}", `{"{}"}`, `{"{}"}`}, most: 1},
		"insert_again": {empty: []string{"{}", "{}", "{}", "{}", "{}", "{}", "{}", "{}", "{}", "{}"},
			full: []string{"{1}", "{" + nobody + "}", "{now}", "{NULL}", "{1}", "{1}", "{k}", `{"{}"}`, `{"{}"}`,
				"{no}"},
			most: 1},
		"delete":          {empty: []string{"{}", "0", ""}, full: []string{"", "2", ""}, most: 2},
		"move":            {empty: []string{"{}", "0"}, full: []string{"", "2"}, most: 2},
		"collapse":        {empty: []string{"10"}, full: []string{"10"}, most: 10},
		"delete_timeouts": {empty: []string{dues, ids}, full: []string{dues, ids}, most: 2},
		"retime": {empty: []string{"now", nobody, "now"},
			full: []string{"2026-01-01 00:00:07+00", nobody, "now"}, most: 1},
		"claim": {empty: []string{"10", "1000", nobody, "1000", "true"},
			full: []string{"10", "1000", nobody, "1000", "true"}, most: 10},
		"extend": {empty: []string{dues, ids, "{1,1}", "{0,1}", nobody, "now"},
			full: []string{dues, ids, "{1,1}", "{0,1}", nobody, "now"}, most: 2},
		"held": {empty: []string{dues, ids, "{1,1}", "{0,1}", nobody},
			full: []string{dues, ids, "{1,1}", "{0,1}", nobody}, most: 2},
		"finish": {empty: []string{dues, ids, "{1,1}", "{0,1}", nobody},
			full: []string{dues, ids, "{1,1}", "{0,1}", nobody}, most: 2},
		"park": {empty: []string{"1", dues, ids, "{1,1}", "{k,k}", nobody, "-1", "{0,1}", "{0,1}"},
			full: []string{"1", dues, ids, "{1,1}", "{k,k}", nobody, "-1", "{0,1}", "{0,1}"}, most: 2},
		"in_dead_hands": {empty: []string{"{" + nobody + "}", due, "1000", nobody, "true"},
			full: []string{"{" + nobody + "}", `{now}`, "1000", nobody, "true"}, most: 2},
		"release": {empty: []string{dues, ids, "{1,1}", "{0,1}", nobody},
			full: []string{dues, ids, "{1,1}", "{0,1}", nobody}, most: 2},
		"relay_delete": {empty: []string{`{"(0,1)","(0,2)"}`, dues, ids},
			full: []string{"", dues, ids}, most: 2},
	}
	explain := func(state string, anew bool) {
		for name, e := range explained {
			args := e.full
			if state == "empty" {
				args = e.empty
			}
			inner, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, scan := range pgtest.Explain(t, inner, name, args...) {
				if scan.Table == "" || !strings.HasPrefix(scan.Table, "queue_") {
					continue
				}
				if state != "empty" && (scan.Node == "Seq Scan" || scan.Rows+scan.Removed > e.most) {
					t.Errorf("%s on a queue that is %s, planned anew %v: %v", name, state, anew, scan)
				}
			}
			if err := inner.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipeline := &pgx.Batch{}
	queue.Open(pipeline, nil)
	if err := tx.SendBatch(t.Context(), pipeline).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SET LOCAL edda.permit = '1'`); err != nil {
		t.Fatal(err)
	}
	w.execTx(tx, `SET LOCAL plan_cache_mode = force_generic_plan`)
	for name := range explained {
		if _, err := tx.Prepare(t.Context(), name, listener.To(listener, name)); err != nil {
			t.Fatal(err)
		}
	}
	explain("empty", false)
	// Half of the messages are due later: a million timeouts must not slow a take.
	if _, err := tx.Exec(t.Context(), `INSERT INTO `+table+` (due, id, kind, header, body)
		SELECT '2026-01-01 00:00:00+00'::timestamptz + n * interval '1 second' + CASE
		WHEN n > 5000 THEN interval '20 years' ELSE interval '0' END,
		       ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'k', '{}', '{}'
		FROM generate_series(1, 10000) n`); err != nil {
		t.Fatal(err)
	}
	var places string
	if err := tx.QueryRow(t.Context(), `SELECT array_agg(ctid ORDER BY due)::text FROM `+table+`
		WHERE due = ANY ($1::timestamptz[])`, dues).Scan(&places); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"delete", "move", "relay_delete"} {
		explained[name].full[0] = places
	}
	explain("full", false)
	w.execTx(tx, `SET LOCAL plan_cache_mode = force_custom_plan`)
	explain("full", true)
}
