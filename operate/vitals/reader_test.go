package vitals_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestStatements(t *testing.T) {
	w := newWorld(t)
	pgtest.Statements(t, w.pool, w.schema, "vitals.sql")
}

func TestQuietDatabase(t *testing.T) {
	w := newWorld(t)
	r := w.reader(vitals.Options{})
	first, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := []string{vitals.Autovacuum, vitals.Connections, vitals.DeadRows, vitals.Freeze, vitals.Setting, vitals.Slot,
		vitals.Snapshot, vitals.Visibility}
	if first.Worst() != vitals.OK || !slices.Equal(names(first), all) {
		t.Errorf("the first look found\n%s", lines(first))
	}
	if time.Since(first.At).Abs() > time.Minute || !first.Visible || first.Server.Tables < 40 ||
		first.Server.Allowed != 27 || first.Server.WALPerSecond != -1 {
		t.Errorf("%+v", first)
	}
	w.exec("SELECT pg_sleep(0.11)")
	w.exec("CREATE TABLE :schema.log AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
	second, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := w.find(second, vitals.WAL, "")
	w.want(v, vitals.OK, "of write-ahead log")
	if took := second.At.Sub(first.At).Seconds(); v.Value.Number < 1e6/took || v.Value.Number > 1e8/took {
		t.Errorf("in %v s it wrote %v, want a megabyte or more", took, v.Value)
	}
}

// The holder of a snapshot is named with all details that identify it, and the remedy ends it.
func TestIdleTransactionIsNamed(t *testing.T) {
	w := newWorld(t)
	query := "SELECT '\x1b[31m\u202e' || '" + strings.Repeat("ø", 300) + "'"
	conn := w.session("application_name=night%20%22report%22", "BEGIN ISOLATION LEVEL REPEATABLE READ", query)
	subject := fmt.Sprintf("session %d", conn.PgConn().PID())

	w.kill(9000)
	v := w.find(w.read(atOnce()), vitals.Snapshot, subject)
	w.want(v, vitals.Warn, "Most dead rows are in queue orders: 9,000.") // the snapshot is old, but few rows are dead
	w.kill(3000)
	w.want(w.find(w.read(old(0.000001, 3600)), vitals.Snapshot, subject), vitals.Warn)
	r := w.read(atOnce())
	v = w.find(r, vitals.Snapshot, subject)
	w.want(v, vitals.Bad, `application "night \"report\""`, `role "edda"`, `database "edda"`, "idle in transaction",
		"its last query began at ", "vacuum cannot remove the rows that were handled since",
		"each take reads over them",
		"Most dead rows are in queue orders: 12,000.", "SELECT pg_terminate_backend("+subject[len("session "):]+")")
	if r.Vitals[0] != v || v.Value.Unit != "s" || v.Value.Number <= 0 || v.Value.Number > 600 ||
		v.Threshold.Unit != "s" {
		t.Errorf("the worst is %+v", r.Vitals[0])
	}
	h := r.Holders[0]
	if []rune(h.Query)[8] != '\x1b' || len([]rune(h.Query)) != 200 || strings.Contains(v.Sentence, "øø") ||
		time.Since(h.Queried).Abs() > time.Minute || h.Transactions < 4 || h.Held <= 0 {
		t.Errorf("the oldest holder is %+v", h)
	}
	w.do(v, "SELECT pg_terminate_backend")
	w.until("the session has ended", "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $1", conn.PgConn().PID())
	if after := w.read(atOnce()); slices.ContainsFunc(after.Vitals, func(v vitals.Vital) bool {
		return v.Subject == subject
	}) {
		t.Errorf("it is still there:\n%s", lines(after))
	}
}

func TestPreparedTransactionIsNamed(t *testing.T) {
	w := newWorld(t)
	w.session("application_name=coordinator", "BEGIN", "SELECT pg_current_xact_id()", "PREPARE TRANSACTION 'it''s two'")
	w.kill(10_000)
	v := w.find(w.read(atOnce()), vitals.Snapshot, `prepared transaction "it's two"`)
	w.want(v, vitals.Bad, `role "edda"`, "Most dead rows are in queue orders: 10,000.", `ROLLBACK PREPARED 'it''s two'`)
	if v.Value.Unit != "s" {
		t.Errorf("its age is %v", v.Value)
	}
	w.do(v, "ROLLBACK PREPARED")
	if after := w.read(atOnce()); after.Worst(vitals.Snapshot) == vitals.Bad {
		t.Errorf("it is still there:\n%s", lines(after))
	}
}

// A slot has no age in time. A logical slot affects only the system catalogs and the disk.
func TestSlotsAreNamed(t *testing.T) {
	w := newWorld(t)
	w.exec(`SELECT pg_create_physical_replication_slot('away', true)`)
	conn := w.standby("away")
	w.session("application_name=end", fmt.Sprintf(`SELECT pg_terminate_backend(%d, 10000)`, conn.PID()))
	w.kill(10_000)
	o := old(2, 2)
	o.Thresholds.SlotBytes = vitals.Bound{Warn: 1024, Bad: 1 << 40}
	r := w.read(o)
	v := w.find(r, vitals.Snapshot, "replication slot away")
	w.want(v, vitals.Bad, "Replication slot away (inactive) has held a snapshot for ", "transactions",
		"SELECT pg_drop_replication_slot('away')")
	if v.Value.Unit != "transactions" || v.Value.Number < 2 {
		t.Errorf("its age is %v", v.Value)
	}
	kept := w.find(r, vitals.Slot, "slot away")
	w.want(kept, vitals.Warn, "of the write-ahead log, and no reader is connected",
		"When the disk is full, the server stops.",
		"SELECT pg_drop_replication_slot('away')")
	w.do(kept, "SELECT pg_drop_replication_slot")

	w.exec(`SELECT pg_create_logical_replication_slot('changes', 'test_decoding')`)
	w.kill(1000)
	v = w.find(w.read(old(1, 1)), vitals.Snapshot, "replication slot changes")
	w.want(v, vitals.Warn, "deleted rows of the system catalogs", "It keeps no row of a queue.")
	w.exec(`SELECT pg_drop_replication_slot('changes')`)
	w.want(w.find(w.read(vitals.Options{}), vitals.Slot, ""), vitals.OK)
}

// If the age of a snapshot is unknown, the time since the reader first observed it counts.
func TestSlotIsWatched(t *testing.T) {
	w := newWorld(t)
	w.exec(`SELECT pg_create_physical_replication_slot('away', true)`)
	conn := w.standby("away")
	w.session("application_name=end", fmt.Sprintf(`SELECT pg_terminate_backend(%d, 10000)`, conn.PID()))
	t.Cleanup(func() { w.exec(`SELECT pg_drop_replication_slot('away')`) })
	w.kill(10_000)
	o := old(0.2, 0.3)
	o.Thresholds.Transactions = vitals.Bound{}
	r := w.reader(o)
	for _, level := range []vitals.Level{vitals.OK, vitals.Bad} {
		report, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := w.find(report, vitals.Snapshot, "replication slot away")
		w.want(v, level)
		if level == vitals.Bad && (v.Value.Unit != "s" || !strings.Contains(v.Sentence, " at least ")) {
			t.Errorf("%+v", v)
		}
		w.exec("SELECT pg_sleep(0.4)")
	}
}

func TestStandbyIsNamed(t *testing.T) {
	w := newWorld(t)
	conn := w.standby("")
	w.kill(10_000)
	v := w.find(w.read(old(1, 1)), vitals.Snapshot, fmt.Sprintf("standby %d", conn.PID()))
	w.want(v, vitals.Bad, `application "replica"`, "hot_standby_feedback = off")
}

// A role without pg_monitor can see the sessions of other roles, but not their activity.
func TestRoleWithoutMonitor(t *testing.T) {
	w := newWorldOf(t, func(w *world) string { return pgtest.Runtime(t, w.owner, w.schema.Name()) })
	conn := w.session("application_name=report", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 'secret'")
	w.kill(10_000)
	for range 3 {
		w.exec("SELECT pg_current_xact_id()")
	}
	r := w.read(old(3, 3))
	v := w.find(r, vitals.Snapshot, fmt.Sprintf("session %d", conn.PgConn().PID()))
	w.want(v, vitals.Bad, `application "report"`, "pg_terminate_backend", "GRANT pg_read_all_stats")
	if v.Value.Unit != "transactions" || r.Visible || r.Holders[0].Query != "" || r.Holders[0].State != "" {
		t.Errorf("%+v\n%+v", v, r.Holders[0])
	}
	hidden := w.find(r, vitals.Visibility, "")
	w.want(hidden, vitals.Warn, "cannot read the activity of other roles' sessions",
		`GRANT pg_read_all_stats TO "`+w.role)
	if n := w.find(r, vitals.Connections, ""); !strings.Contains(n.Sentence, `1 by "report"`) {
		t.Errorf("%s", n.Sentence)
	}
	w.do(hidden, "GRANT pg_read_all_stats")
	r = w.read(atOnce())
	w.want(w.find(r, vitals.Visibility, ""), vitals.OK)
	if v = w.find(r, vitals.Snapshot, v.Subject); v.Value.Unit != "s" || r.Holders[0].Query != "SELECT 'secret'" {
		t.Errorf("%+v\n%+v", v, r.Holders[0])
	}
}

func TestDeadRowsWithoutVacuum(t *testing.T) {
	w := newWorld(t)
	w.kill(10_000)
	v := w.find(w.read(vitals.Options{}), vitals.DeadRows, "queue orders")
	w.want(v, vitals.Warn, "Queue orders has 10,000 dead rows beside 0 living ones, and it was never vacuumed.",
		"VACUUM "+w.queueQuoted())
	limits := vitals.Options{Thresholds: vitals.Thresholds{DeadRows: vitals.Bound{Warn: 100, Bad: 1000}}}
	w.want(w.find(w.read(limits), vitals.DeadRows, "queue orders"), vitals.Warn) // the table may be new

	w.exec("ALTER TABLE " + w.queue() + " SET (autovacuum_enabled = false)")
	r := w.read(limits)
	w.want(w.find(r, vitals.DeadRows, "queue orders"), vitals.Bad)
	off := w.find(r, vitals.Autovacuum, "queue orders")
	w.want(off, vitals.Bad, "Autovacuum is off for queue orders, which has 10,000 dead rows")
	if i := slices.IndexFunc(r.Tables, func(t vitals.Table) bool { return t.Off }); i != 0 ||
		r.Tables[0].Endpoint != "orders" || r.Tables[0].Dead != 10_000 {
		t.Errorf("%+v", r.Tables[0])
	}
	w.exec("VACUUM " + w.queue())
	w.until("vacuum is known", "SELECT pg_stat_get_dead_tuples($1::text::regclass) = 0", w.queue())
	r = w.read(limits)
	w.want(w.find(r, vitals.DeadRows, ""), vitals.OK)
	off = w.find(r, vitals.Autovacuum, "queue orders")
	w.want(off, vitals.Warn, "has 0 dead rows")
	w.do(off, "ALTER TABLE")
	w.want(w.find(w.read(limits), vitals.Autovacuum, ""), vitals.OK, "Autovacuum is on for all ")

	// It was vacuumed shortly before, and has many dead rows again: vacuum reaches it.
	w.kill(2000)
	w.want(w.find(w.read(limits), vitals.DeadRows, "queue orders"), vitals.OK, "its last vacuum was ")
}

func (w *world) queueQuoted() string {
	schema, table, _ := strings.Cut(w.queue(), ".")
	return pgx.Identifier{schema, table}.Sanitize()
}

func TestFewConnectionsLeft(t *testing.T) {
	w := newWorld(t)
	before := w.read(vitals.Options{}).Server
	for n := before.Used; n < 23; n++ {
		w.session("application_name=shop%1b%5b31m")
	}
	r := w.read(vitals.Options{})
	v := w.find(r, vitals.Connections, "")
	w.want(v, vitals.Warn, "of 27 connections are in use", ` by "shop`, "pool_max_conns", "PgBouncer")
	if strings.Contains(v.Sentence, "\x1b") || r.Clients[0].Connections != 23-before.Used {
		t.Errorf("%s\n%+v", v.Sentence, r.Clients)
	}
	for range 3 {
		w.session("application_name=shop")
	}
	w.want(w.find(w.read(vitals.Options{}), vitals.Connections, ""), vitals.Bad, "26 of 27",
		"Without a free connection")
}

func TestSettingsThatMatter(t *testing.T) {
	w := newWorld(t)
	config := w.pool.Config()
	config.MaxConns = 1
	for name, value := range map[string]string{"synchronous_commit": "off", "statement_timeout": "9s",
		"idle_in_transaction_session_timeout": "0"} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.pool = pool
	r := w.read(vitals.Options{})
	w.want(w.find(r, vitals.Setting, "synchronous_commit"), vitals.Warn, "loses the last messages")
	w.want(w.find(r, vitals.Setting, "statement_timeout"), vitals.Warn, "is 9s", "'10s' or more")
	w.want(w.find(r, vitals.Setting, "idle_in_transaction_session_timeout"), vitals.Warn, "keeps dead rows",
		"ALTER DATABASE")
	if len(r.Vitals) < 3 || r.Worst(vitals.Setting) != vitals.Warn {
		t.Errorf("%s", lines(r))
	}
}

// The number of statements of a Read, and of the rows that they return, does not depend on the number of queues.
func TestThousandQueues(t *testing.T) {
	w := newWorld(t)
	w.exec(`DO $$ BEGIN FOR n IN 2..1000 LOOP
		EXECUTE format('CREATE TABLE :schema.queue_%s (LIKE :schema.queue_1 INCLUDING STORAGE)
			WITH (autovacuum_enabled = %s)', n, n % 2 = 1);
		EXECUTE format('INSERT INTO :schema.queue (id, endpoint) OVERRIDING SYSTEM VALUE VALUES (%s, %L)', n, 'e' || n);
		IF n % 200 = 0 THEN COMMIT; END IF;
	END LOOP; END $$`)
	t.Cleanup(func() { // in pieces, because the server has too little room for locks
		w.exec(`DO $$ BEGIN FOR n IN 2..1000 LOOP
			EXECUTE format('DROP TABLE :schema.queue_%s', n);
			IF n % 200 = 0 THEN COMMIT; END IF;
		END LOOP; END $$`)
	})
	w.kill(100)
	begin := time.Now()
	r := w.read(vitals.Options{})
	t.Logf("a look at 1,000 queues took %v", time.Since(begin))
	if len(r.Tables) > 40 || r.Tables[0].Endpoint != "orders" || r.Server.Tables < 1000 || len(r.Vitals) > 32 {
		t.Errorf("%d tables of %d, the first is %+v, and %d vitals", len(r.Tables), r.Server.Tables, r.Tables[0],
			len(r.Vitals))
	}
	w.want(w.find(r, vitals.Autovacuum, "more tables"), vitals.Warn, "480 more tables")
	locks := w.find(r, vitals.Setting, "max_locks_per_transaction")
	w.want(locks, vitals.Warn, "out of shared memory", "max_locks_per_transaction = ")
}

// Locks of others do not delay a Read, except a lock on the table queue, which makes Read give up.
func TestLookWaitsForNobody(t *testing.T) {
	w := newWorld(t)
	r := w.reader(vitals.Options{})
	blocker := w.session("application_name=migration", "BEGIN", "LOCK TABLE "+w.queue()+", :schema.saga, "+
		":schema.dead_letter IN ACCESS EXCLUSIVE MODE")
	if _, err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := blocker.Exec(t.Context(),
		w.schema.Render("LOCK TABLE :schema.queue IN ACCESS EXCLUSIVE MODE")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Read(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "55P03") {
		t.Errorf("want the end of lock_timeout, got %v", err)
	}
}

func TestReadFailsWithTheRemedy(t *testing.T) {
	w := newWorld(t)
	r, err := vitals.New(w.pool, vitals.Options{Schema: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("without a schema: %v", err)
	}
}
