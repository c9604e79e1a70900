package vitals_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// server is used by this package alone, because every transaction of another test would be a finding. For the same
// reason its tests run one after another. Autovacuum is on, but practically never runs.
var server = sync.OnceValues(func() (*pgdev.Server, error) {
	return pgdev.Start(context.Background(), pgdev.Options{Private: true, Settings: map[string]string{
		"autovacuum": "on", "autovacuum_naptime": "2000000", "max_prepared_transactions": "4", "wal_level": "logical",
		"max_connections": "30", "idle_in_transaction_session_timeout": "1h", "fsync": "off",
		"max_locks_per_transaction": "32",
	}})
})

func TestMain(m *testing.M) {
	code := m.Run()
	if s, err := server(); err != nil || s.Stop() != nil {
		code = max(code, 1)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}

// world is a schema with one queue, orders, on the server.
type world struct {
	t      *testing.T
	dsn    string
	owner  *pgxpool.Pool
	pool   *pgxpool.Pool // of the role under test
	role   string        // of pool; "" is the owner
	schema pg.Schema
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOf(t, func(w *world) string { return pgtest.RoleUnderTest(t, w.owner, w.schema.Name()) })
	if w.role != "" {
		w.exec("GRANT pg_read_all_stats TO " + pgx.Identifier{w.role}.Sanitize())
	}
	return w
}

var worlds int

func newWorldOf(t *testing.T, makeRole func(*world) string) *world {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	worlds++
	schema, err := pg.ParseSchema(fmt.Sprintf("vitals_%d", worlds))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dsn: s.DSN(), schema: schema}
	w.owner = w.open("")
	t.Cleanup(func() { w.exec("SET client_min_messages = warning; DROP SCHEMA :schema CASCADE") })
	pgtest.Migrate(t, w.owner, schema.Name())
	w.exec("SELECT :schema.create_queue('orders')")
	if w.role = makeRole(w); w.role != "" {
		w.pool = w.open(w.role)
	} else {
		w.pool = w.owner
	}
	return w
}

func (w *world) open(role string) *pgxpool.Pool {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	config.MaxConns = 3
	pgtest.Become(config, role)
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	if _, err := w.owner.Exec(ctx, w.schema.Render(sql), args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) text(sql string, args ...any) (text string) {
	w.t.Helper()
	if err := w.owner.QueryRow(context.WithoutCancel(w.t.Context()), w.schema.Render(sql),
		args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// until waits for a condition that the server brings about by itself.
func (w *world) until(what, sql string, args ...any) {
	w.t.Helper()
	for range 4000 {
		if w.text("SELECT ("+sql+")::text", args...) == "true" {
			return
		}
		w.exec("SELECT pg_sleep(0.01)")
	}
	w.t.Fatalf("waited in vain: %s", what)
}

// session opens a separate connection. It ends with the test.
func (w *world) session(parameters string, statements ...string) *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn+"&"+parameters)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = conn.Close(context.WithoutCancel(w.t.Context()))
		w.until("the session has ended", "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $1",
			conn.PgConn().PID())
	})
	for _, sql := range statements {
		if _, err := conn.Exec(w.t.Context(), w.schema.Render(sql)); err != nil {
			w.t.Fatalf("%s: %v", sql, err)
		}
	}
	return conn
}

// queue returns the table of the endpoint orders.
func (w *world) queue() string {
	w.t.Helper()
	return w.text("SELECT format('%I.queue_%s', :'schema', id) FROM :schema.queue WHERE endpoint = 'orders'")
}

// kill leaves n more dead rows in the queue of orders.
func (w *world) kill(n int) {
	w.t.Helper()
	table := w.queue()
	const dead = "SELECT pg_stat_get_dead_tuples($1::text::regclass)"
	before, err := strconv.Atoi(w.text(strings.Replace(dead, "regclass)", "regclass)::text", 1), table))
	if err != nil {
		w.t.Fatal(err)
	}
	conn := w.session("application_name=work", fmt.Sprintf(`INSERT INTO %s (due, id, sent, kind, header, body)
		SELECT now(), gen_random_uuid(), now(), 'k', '{}', '' FROM generate_series(1, %d)`, table, n),
		"DELETE FROM "+table)
	_ = conn.Close(w.t.Context()) // which hands its statistics in
	w.until("the statistics know of the dead rows", dead+" >= $2::bigint", table, before+n)
}

func (w *world) reader(o vitals.Options) *vitals.Reader {
	w.t.Helper()
	o.Schema = w.schema.Name()
	r, err := vitals.New(w.pool, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) read(o vitals.Options) vitals.Report {
	w.t.Helper()
	report, err := w.reader(o).Read(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// find returns the only vital of that name whose subject begins with subject.
func (w *world) find(r vitals.Report, name, subject string) vitals.Vital {
	w.t.Helper()
	var found []vitals.Vital
	for _, v := range r.Vitals {
		if v.Name == name && strings.HasPrefix(v.Subject, subject) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%d vitals are %s of %q, want one:\n%s", len(found), name, subject, lines(r))
	}
	return found[0]
}

func lines(r vitals.Report) string {
	var b strings.Builder
	for _, v := range r.Vitals {
		fmt.Fprintf(&b, "%s %s %q %v (%v): %s | %s\n", v.Level, v.Name, v.Subject, v.Value, v.Threshold, v.Sentence,
			v.Do)
	}
	return b.String()
}

// want fails the test unless the vital has the level and its texts have these parts.
func (w *world) want(v vitals.Vital, level vitals.Level, parts ...string) {
	w.t.Helper()
	if v.Level != level {
		w.t.Errorf("%s is %v, want %v: %s (%v, %v)", v.Name, v.Level, level, v.Sentence, v.Value, v.Threshold)
	}
	for _, part := range parts {
		if !strings.Contains(v.Sentence+"\n"+v.Do, part) {
			w.t.Errorf("%s says\n%s\n%s\nand not %q", v.Name, v.Sentence, v.Do, part)
		}
	}
	if (v.Level > vitals.OK) != (v.Do != "") || !strings.HasSuffix(v.Sentence, ".") {
		w.t.Errorf("%s is %v, says %q, and tells to do %q", v.Name, v.Level, v.Sentence, v.Do)
	}
}

// do runs the SQL of a remedy, from the given word on.
func (w *world) do(v vitals.Vital, word string) {
	w.t.Helper()
	_, sql, found := strings.Cut(v.Do, word)
	if !found {
		w.t.Fatalf("%q has no %s", v.Do, word)
	}
	sql, _, _ = strings.Cut(word+sql, ";")
	w.session("application_name=remedy", strings.TrimSuffix(sql, "."))
}

// standby starts a walsender, with a slot unless slot is empty, and reports a query with the present snapshot.
func (w *world) standby(slot string) *pgconn.PgConn {
	w.t.Helper()
	xmin, err := strconv.ParseUint(w.text(`SELECT pg_snapshot_xmin(pg_current_snapshot())::text`), 10, 32)
	if err != nil {
		w.t.Fatal(err)
	}
	if slot != "" {
		slot = "SLOT " + slot
	}
	conn := w.session("application_name=replica&replication=true").PgConn()
	conn.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION " + slot + " PHYSICAL " +
		w.text(`SELECT pg_current_wal_flush_lsn()::text`)})
	if err := conn.Frontend().Flush(); err != nil {
		w.t.Fatal(err)
	}
	reply := binary.BigEndian.AppendUint64([]byte{'h'}, 0)
	reply = binary.BigEndian.AppendUint32(reply, uint32(xmin))
	conn.Frontend().Send(&pgproto3.CopyData{Data: append(reply, make([]byte, 12)...)})
	if err := conn.Frontend().Flush(); err != nil {
		w.t.Fatal(err)
	}
	w.until("the server knows what the standby asks", `SELECT (SELECT count(*) FROM pg_stat_replication
		WHERE backend_xmin IS NOT NULL) + (SELECT count(*) FROM pg_replication_slots WHERE xmin IS NOT NULL) = 1`)
	return conn
}

// old returns thresholds that a transaction of this test reaches at once.
func old(warn, bad float64) vitals.Options {
	b := vitals.Bound{Warn: warn, Bad: bad}
	return vitals.Options{Thresholds: vitals.Thresholds{SnapshotSeconds: b, Transactions: b}}
}

// atOnce makes every age bad.
func atOnce() vitals.Options { return old(0.000001, 0.000001) }

func names(r vitals.Report) (all []string) {
	for _, v := range r.Vitals {
		if !slices.Contains(all, v.Name) {
			all = append(all, v.Name)
		}
	}
	slices.Sort(all)
	return all
}
