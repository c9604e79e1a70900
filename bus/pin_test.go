package bus_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// newPinWorld has a server of its own: every transaction of a different test would be a pin. Autovacuum is off.
func newPinWorld(t *testing.T) *world {
	t.Helper()
	return newPinWorldOf(t, func(testing.TB, *pgxpool.Pool, string) string { return "" })
}

func newPinWorldOf(t *testing.T, makeRole func(testing.TB, *pgxpool.Pool, string) string) *world {
	t.Helper()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true, Settings: map[string]string{
		"autovacuum": "off", "max_prepared_transactions": "4", "wal_level": "logical",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := newWorldIn(t, server.DSN(), bus.Options{}, makeRole)
	w.makeQueue("orders")
	if err := w.bus.InstallQueue(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	return w
}

// session is a new connection, with an application name and further parameters of the connection string.
func (w *world) session(name string, parameters ...string) *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn+"&"+strings.Join(append(parameters, "application_name="+name), "&"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) })
	return conn
}

func (w *world) do(conn *pgx.Conn, statements ...string) {
	w.t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(w.t.Context(), w.sql(sql)); err != nil {
			w.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// dieInQueue leaves n dead messages in the queue of orders, in one transaction for each ten.
func (w *world) dieInQueue(n int) {
	w.t.Helper()
	conn, table := w.session("work"), w.queue("orders")
	for range 10 {
		w.do(conn, fmt.Sprintf(`INSERT INTO %s (due, id, sent, kind, header, body)
			SELECT now(), gen_random_uuid(), now(), 'k', '{}', '' FROM generate_series(1, %d)`, table, n/10),
			`DELETE FROM `+table)
	}
	_ = conn.Close(w.t.Context()) // which reports its statistics
	w.until("the statistics know of the dead rows", func() bool {
		return w.count(`SELECT pg_stat_get_dead_tuples($1::text::regclass)`, w.sql(table)) >= n
	})
}

func (w *world) pin() (p operate.Pin, suffers bool) {
	w.t.Helper()
	p, suffers, err := w.operator().Queues().Pin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return p, suffers
}

// feedback is the report of a standby about its oldest query.
func (w *world) feedback(conn *pgconn.PgConn, xmin uint64) {
	w.t.Helper()
	reply := binary.BigEndian.AppendUint64([]byte{'h'}, 0)
	reply = binary.BigEndian.AppendUint32(reply, uint32(xmin))
	reply = append(reply, make([]byte, 12)...) // its epoch, and no catalog_xmin
	conn.Frontend().Send(&pgproto3.CopyData{Data: reply})
	if err := conn.Frontend().Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// replicate starts a walsender, with a slot unless its name is empty, and reports a query that is as old as this
// moment.
func (w *world) replicate(slot string) *pgx.Conn {
	w.t.Helper()
	xmin, err := strconv.ParseUint(w.text(`SELECT pg_snapshot_xmin(pg_current_snapshot())::text`), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	if slot != "" {
		w.exec(`SELECT pg_create_physical_replication_slot($1::text, true)`, slot)
		slot = "SLOT " + slot
	}
	conn := w.session("replica", "replication=true")
	at := w.text(`SELECT pg_current_wal_flush_lsn()::text`) // a walsender refuses to begin behind it
	conn.PgConn().Frontend().Send(&pgproto3.Query{String: "START_REPLICATION " + slot + " PHYSICAL " + at})
	if err := conn.PgConn().Frontend().Flush(); err != nil {
		w.t.Fatal(err)
	}
	w.feedback(conn.PgConn(), xmin)
	w.until("the server knows what the standby asks", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL) +
			(SELECT count(*) FROM pg_replication_slots WHERE xmin IS NOT NULL)`) == 1
	})
	return conn
}

// pinned is a cause that keeps dead rows, the expected Pin, and the part of the remedy that is SQL.
type pinned struct {
	want   operate.Pin
	remedy string
	end    func() // if the remedy has no SQL, or SQL that is not enough
}

func (w *world) pinnedBySession() pinned {
	conn := w.session("report")
	w.do(conn, `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)
	pid := fmt.Sprint(conn.PgConn().PID())
	return pinned{want: operate.Pin{Kind: "session", Name: pid, Database: "edda",
		Role: "edda", Application: "report", State: "idle in transaction"},
		remedy: `SELECT pg_terminate_backend(` + pid + `)`}
}

func (w *world) pinnedByWriter() pinned {
	conn := w.session("writer", "dbname=postgres")
	w.do(conn, `BEGIN`, `SELECT pg_current_xact_id()`)
	pid := fmt.Sprint(conn.PgConn().PID())
	w.do(w.session("beside"), `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`) // as old as the open transaction
	return pinned{want: operate.Pin{Kind: "session", Name: pid, Database: "postgres",
		Role: "edda", Application: "writer", State: "idle in transaction"},
		remedy: `SELECT pg_terminate_backend(` + pid + `)`}
}

func (w *world) pinnedByPrepared() pinned {
	w.do(w.session("coordinator"), `BEGIN`, `SELECT pg_current_xact_id()`, `PREPARE TRANSACTION 'it''s two'`)
	return pinned{want: operate.Pin{Kind: "prepared transaction", Name: "it's two", Database: "edda", Role: "edda"},
		remedy: `ROLLBACK PREPARED 'it''s two'`}
}

func (w *world) pinnedBySlot() pinned {
	conn := w.replicate("away")
	w.do(w.session("end"), fmt.Sprintf(`SELECT pg_terminate_backend(%d, 10000)`, conn.PgConn().PID()))
	return pinned{want: operate.Pin{Kind: "replication slot", Name: "away", State: "inactive"},
		remedy: `SELECT pg_drop_replication_slot('away')`}
}

func (w *world) pinnedByStandby() pinned {
	conn := w.replicate("")
	return pinned{want: operate.Pin{Kind: "standby", Name: fmt.Sprint(conn.PgConn().PID()),
		Role: "edda", Application: "replica", State: "active"},
		remedy: `hot_standby_feedback = off`, end: func() { w.feedback(conn.PgConn(), 0) }}
}

// Dead messages that vacuum cannot remove slow every take, and no log line named the cause to a person who could act.
func TestPinIsNamedWithItsRemedy(t *testing.T) {
	for name, pin := range map[string]func(*world) pinned{
		"session": (*world).pinnedBySession, "writer of another database": (*world).pinnedByWriter,
		"prepared transaction": (*world).pinnedByPrepared, "slot": (*world).pinnedBySlot,
		"standby": (*world).pinnedByStandby,
	} {
		t.Run(name, func(t *testing.T) {
			w := newPinWorld(t)
			made := pin(w)
			w.dieInQueue(10_000)
			got, suffers := w.pin()
			if !suffers || got.Transactions < 20 || got.DeadRows < 10_000 || got.Endpoint != "orders" {
				t.Errorf("%+v, suffers %v: want the dead rows of orders, and twenty transactions", got, suffers)
			}
			want := made.want
			if !samePin(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if remedy := got.Remedy(); !strings.Contains(remedy, made.remedy) {
				t.Fatalf("the remedy is %q, want %q in it", remedy, made.remedy)
			}
			if made.end == nil {
				w.do(w.session("remedy"), made.remedy)
			} else {
				made.end()
			}
			w.until("it is over", func() bool {
				now, _ := w.pin()
				return now.Kind != want.Kind ||
					now.Name != want.Name
			})
		})
	}
}

// The role is no superuser, and cannot read other sessions' details; the log must not suggest that there is no pin.
func TestPinIsNamedToARoleThatMayNotSeeIt(t *testing.T) {
	w := newPinWorldOf(t, func(t testing.TB, owner *pgxpool.Pool, schema string) string {
		script, err := migrations.Grants(schema, migrations.Roles{Runtime: "runner"})
		for _, sql := range []string{"CREATE ROLE runner", script} {
			if err == nil {
				_, err = owner.Exec(t.Context(), sql)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return "runner"
	})
	made := w.pinnedBySession()
	w.dieInQueue(10_000)
	got, suffers := w.pin()
	want := made.want
	want.State = ""
	if !suffers || !samePin(got, want) || got.Held != 0 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if remedy := got.Remedy(); !strings.Contains(remedy, `GRANT pg_read_all_stats TO "runner"`) {
		t.Errorf("the remedy is %q, want a grant in it", remedy)
	}
	w.exec(`GRANT pg_read_all_stats TO runner`)
	if got, _ = w.pin(); got.State != "idle in transaction" || got.Held == 0 ||
		strings.Contains(got.Remedy(), "GRANT") {
		t.Errorf("with pg_read_all_stats: %+v, %s", got, got.Remedy())
	}
}

// A session that looks like a pin and keeps no message is not reported, nor is a pin without dead rows.
func TestWhatKeepsNothingIsNoPin(t *testing.T) {
	w := newPinWorld(t)
	made := w.pinnedBySession()
	w.dieInQueue(1_900)
	// a table that is no queue may have more dead rows
	work := w.session("work")
	w.do(work, `INSERT INTO edda.lease (name, holder, epoch, acquired, renewed, expires)
		SELECT 'n' || n, 'h', 1, now(), now(), now() FROM generate_series(1, 9000) n`, `DELETE FROM edda.lease`)
	w.must(work.Close(t.Context())) // an idle session of PostgreSQL 14 keeps its statistics
	w.until("the statistics know of the dead rows", func() bool {
		return w.count(`SELECT pg_stat_get_dead_tuples('edda.lease'::regclass)`) >= 9000
	})
	if p, suffers := w.pin(); suffers || p.Kind != "" {
		t.Errorf("with few dead rows: %+v, suffers %v", p, suffers)
	}
	w.dieInQueue(2_000)
	if p, suffers := w.pin(); !suffers || !samePin(p, made.want) || p.Endpoint != "orders" {
		t.Errorf("with 2,000 dead rows of a queue: %+v, suffers %v", p, suffers)
	}
	w.do(w.session("end"), made.remedy)
	w.until("it is over", func() bool { p, _ := w.pin(); return p.Name != made.want.Name })

	w.exec(`SELECT pg_create_logical_replication_slot('changes', 'test_decoding')`) // keeps rows of catalogs
	// at READ COMMITTED no snapshot is kept between statements
	w.do(w.session("read"), `BEGIN ISOLATION LEVEL READ COMMITTED`, `SELECT 1`)
	w.do(w.session("elsewhere", "dbname=postgres"), `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)
	vacuum := w.session("vacuum")
	w.do(vacuum, `SET vacuum_cost_delay = '100ms'`, `SET vacuum_cost_limit = 1`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := vacuum.Exec(ctx, w.sql(`VACUUM `+w.queue("orders")))
		ended <- err
	}()
	w.until("a vacuum is at work", func() bool { return w.count(`SELECT count(*) FROM pg_stat_progress_vacuum`) == 1 })
	if p, _ := w.pin(); p.Kind != "" {
		t.Errorf("%+v, want nothing", p)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the vacuum ended before its time: %v", err)
	}
}

// All processes find the same pin. One process logs it, and only if every search for ten seconds has found it, or for
// twenty seconds if the pin is not that old.
func TestOneProcessWarnsOfAPin(t *testing.T) {
	w := newPinWorld(t)
	log := &kept{}
	o := bus.Options{Schema: w.schema, Logger: log.logger()}
	processes := []*bus.Bus{w.newBus(o), w.newBus(o)}
	look := func(want int, when string) {
		t.Helper()
		for _, b := range processes {
			bus.LookForPinNow(t.Context(), b)
		}
		if got := strings.Count(log.String(), "dead rows cannot be removed"); got != want {
			t.Errorf("%s: %d warnings, want %d: %s", when, got, want, log)
		}
	}
	first := w.pinnedBySession()
	w.dieInQueue(10_000)
	look(0, "first look")
	seen := func(d time.Duration) {
		for _, b := range processes {
			bus.PinSince(b, d)
		}
	}
	seen(time.Minute)
	second := w.pinnedBySession()
	w.do(w.session("end"), first.remedy)
	w.until("the first is over", func() bool { p, _ := w.pin(); return p.Name == second.want.Name })
	look(0, "another one")
	look(0, "the same, a moment later")
	seen(19 * time.Second)
	look(0, "a young one, for 19 s")
	seen(20 * time.Second)
	look(1, "for 20 s")
	look(1, "a moment later")
	w.exec(`UPDATE edda.lease SET expires = now() WHERE name = $1`, bus.PinLease)
	look(2, "a minute later")
	for _, part := range []string{"session " + second.want.Name, `idle in transaction`, "endpoint=orders",
		"dead_rows=1", second.remedy, "docs/operate/scaling.md"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log says %q, want %q in it", log, part)
		}
	}
}

// A running endpoint warns of a pin within 30 s after its queue has many dead rows, even if the pin began at that
// moment, and so does a program that only cleans.
func TestAPinIsWarnedOfWithin30Seconds(t *testing.T) {
	w := newPinWorld(t)
	log := &kept{}
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger()})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- b.Clean(ctx) }()
	made := w.pinnedBySession()
	w.dieInQueue(2_000)
	late := time.After(30 * time.Second)
	for !strings.Contains(log.String(), made.want.Name) {
		select {
		case <-late:
			t.Fatalf("30 s after the rows died the log says %q, want a warning of %s", log, made.want.Holder())
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// One search cannot determine how long a hidden pin has lasted.
func TestAPinIsOld(t *testing.T) {
	t.Parallel()
	var got []bool
	for _, p := range []operate.Pin{{Held: 20 * time.Second}, {Held: 19 * time.Second, Transactions: 1e6},
		{Transactions: 1000}, {Transactions: 999}} {
		got = append(got, p.Old())
	}
	if want := []bool{true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// samePin compares the holders of two pins, and not their age or the harm they do.
func samePin(got, want operate.Pin) bool {
	return got.Kind == want.Kind && got.Name == want.Name && got.Holder() == want.Holder()
}
