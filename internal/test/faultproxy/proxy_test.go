package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		os.Exit(runChild(dsn))
	}
	code := pgdev.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// stage is a table with rows 1 to 4 of value 0, and a proxy in front of it.
type stage struct {
	t      *testing.T
	schema string
	proxy  *Proxy
	direct *pgxpool.Pool // without the proxy; faults use it from the proxy's goroutines
}

func newStage(t *testing.T, o Options) *stage {
	t.Helper()
	direct := pgdev.Pool(t)
	backend, err := Backend(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := Listen(t.Context(), backend, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t: t, schema: pgdev.Schema(t), proxy: proxy, direct: direct}
	s.exec(`CREATE SCHEMA :s; CREATE TABLE :s.r (id int PRIMARY KEY, v int NOT NULL);
		INSERT INTO :s.r SELECT i, 0 FROM generate_series(1, 4) i`)
	return s
}

func dial(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// through returns a new connection through the proxy.
func (s *stage) through() *pgx.Conn {
	s.t.Helper()
	return dial(s.t, s.proxy.DSN(pgdev.DSN(s.t)))
}

func (s *stage) sql(text string) string { return render(text, s.schema) }

func render(text, schema string) string { return strings.ReplaceAll(text, ":s", schema) }

func (s *stage) exec(sql string) {
	s.t.Helper()
	if _, err := s.direct.Exec(s.t.Context(), s.sql(sql)); err != nil {
		s.t.Fatal(err)
	}
}

const (
	putSQL  = "-- name: put\nUPDATE :s.r SET v = $2 WHERE id = $1"
	takeSQL = "--   name:  take  \nSELECT id, v FROM :s.r WHERE id > $1 FOR UPDATE"
)

// runBatch sends begin, take, put 1, put 2 and commit in one round trip.
func runBatch(ctx context.Context, conn *pgx.Conn, schema string, value int) error {
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue(render(takeSQL, schema), 2)
	batch.Queue(render(putSQL, schema), 1, value)
	batch.Queue(render(putSQL, schema), 2, value)
	batch.Queue("commit")
	return conn.SendBatch(ctx, batch).Close()
}

func (s *stage) batch(conn *pgx.Conn, value int) error {
	return runBatch(s.t.Context(), conn, s.schema, value)
}

// expect waits until rows 1 and 2 have the value: the server process of a cut connection may still be rolling back,
// and holds their locks until then.
func (s *stage) expect(value int, story ...any) {
	s.t.Helper()
	rows, err := s.direct.Query(s.t.Context(), s.sql("SELECT v FROM :s.r WHERE id < 3 ORDER BY id FOR UPDATE"))
	got, err2 := pgx.CollectRows(rows, pgx.RowTo[int])
	if err := errors.Join(err, err2); err != nil {
		s.t.Fatal(err)
	}
	if want := []int{value, value}; !slices.Equal(got, want) {
		s.t.Errorf("%v: rows have %v, want %v (struck: %v)", fmt.Sprint(story...), got, want, s.proxy.Fired())
	}
}

func (s *stage) expectFired(want ...string) {
	s.t.Helper()
	if got := s.proxy.Fired(); !slices.Equal(got, want) {
		s.t.Errorf("struck: %q, want %q", got, want)
	}
}

var batchSeen = map[string]int{"begin": 1, "take": 1, "put": 2, "commit": 1}

func TestCleanRunIsSeenAndUnchanged(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	for value := 1; value <= 2; value++ { // the second run finds prepared statements
		s.proxy.Set()
		if err := s.batch(conn, value); err != nil {
			t.Fatal(err)
		}
		s.expect(value)
		if got := s.proxy.Seen(); !maps.Equal(got, batchSeen) {
			t.Errorf("run %d: seen %v, want %v", value, got, batchSeen)
		}
	}
	s.expectFired()
}

func TestWalkCutsBeforeAndAfterEveryStatement(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	for _, warm := range []bool{false, true} {
		s.exec("UPDATE :s.r SET v = 0")
		value := 0 // as committed
		for i, f := range Walk(batchSeen, Cut) {
			conn := s.through()
			if warm { // statements are prepared, so the pipeline is one piece
				s.proxy.Set()
				if err := s.batch(conn, value); err != nil {
					t.Fatal(err)
				}
			}
			s.proxy.Set(f)
			if err := s.batch(conn, 100+i); err == nil {
				t.Errorf("warm %v, %v: the client saw no error", warm, f)
			}
			if f.Statement == "commit" && f.When == After {
				value = 100 + i
			}
			s.expect(value, "warm ", warm, ", ", f)
			s.expectFired(f.String())
		}
		if value == 0 {
			t.Error("the walk did not reach the end of commit")
		}
	}
}

func TestDropReplyCommitsAndSwallowDoesNot(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(s *stage, conn *pgx.Conn, value int) error{
		"batch": func(s *stage, conn *pgx.Conn, value int) error { return s.batch(conn, value) },
		"simple": func(s *stage, conn *pgx.Conn, value int) error {
			return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), s.sql("-- name: put\nUPDATE :s.r SET v = $1"), value)
				return err
			})
		},
		"one query": func(s *stage, conn *pgx.Conn, value int) error {
			_, err := conn.Exec(t.Context(), s.sql(fmt.Sprintf("-- name: commit\nBEGIN; UPDATE :s.r SET v = %d; COMMIT",
				value)))
			return err
		},
		"without a transaction": func(s *stage, conn *pgx.Conn, value int) error {
			_, err := conn.Exec(t.Context(), s.sql("-- name: commit\nUPDATE :s.r SET v = $1"), value)
			return err
		},
	}
	for name, run := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{})
			s.proxy.Set(Fault{Statement: "commit", N: 1, Do: Swallow}, Fault{Statement: "commit", N: 2, Do: DropReply})
			if err := run(s, s.through(), 7); err == nil {
				t.Error("swallow: the client saw no error")
			}
			s.expect(0, "swallow")
			if err := run(s, s.through(), 8); err == nil {
				t.Error("drop reply: the client saw no error")
			}
			s.expect(8, "drop reply")
			if err := run(s, s.through(), 9); err != nil {
				t.Errorf("the third passing has no fault: %v", err)
			}
			s.expect(9, "no fault")
			s.expectFired("commit 1 before: swallow", "commit 2 after: drop reply")
		})
	}
}

func TestDropReplyKeepsRowsFromTheClient(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	for _, do := range []Action{Cut, DropReply} {
		s.proxy.Set(Fault{Statement: "read", When: After, Do: do})
		rows, err := s.through().Query(t.Context(), s.sql("-- name: read\nSELECT id FROM :s.r WHERE id > $1"), 0)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for rows.Next() {
			count++
		}
		if do.kind == dropReply && count != 0 || rows.Err() == nil {
			t.Errorf("%v: the client saw %d rows and the error %v", do, count, rows.Err())
		}
	}
}

// locked returns the rows that a second connection has locked.
func (s *stage) locked() []int {
	s.t.Helper()
	rows, err := s.direct.Query(s.t.Context(), s.sql(`SELECT id FROM :s.r EXCEPT ALL
		SELECT id FROM (SELECT id FROM :s.r FOR UPDATE SKIP LOCKED) free ORDER BY id`))
	got, err2 := pgx.CollectRows(rows, pgx.RowTo[int])
	if err := errors.Join(err, err2); err != nil {
		s.t.Error(err)
	}
	return got
}

func TestAtTheMomentAllBeforeIsDoneAndNothingAfter(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	locks := []struct {
		fault Fault
		want  []int
	}{
		{Fault{Statement: "take", When: Before}, nil},
		{Fault{Statement: "take", When: After}, []int{3, 4}},
		{Fault{Statement: "put", N: 1, When: Before}, []int{3, 4}},
		{Fault{Statement: "put", N: 1, When: After}, []int{1, 3, 4}},
		{Fault{Statement: "put", N: 2, When: Before}, []int{1, 3, 4}},
		{Fault{Statement: "put", N: 2, When: After}, []int{1, 2, 3, 4}},
		{Fault{Statement: "commit", When: Before}, []int{1, 2, 3, 4}},
		{Fault{Statement: "commit", When: After}, nil},
	}
	for i, l := range locks {
		var struck atomic.Int32
		l.fault.Do = Pause(func() {
			struck.Add(1)
			if got := s.locked(); !slices.Equal(got, l.want) {
				t.Errorf("%v: rows %v are locked, want %v", l.fault, got, l.want)
			}
		})
		s.proxy.Set(l.fault)
		if err := s.batch(conn, i+1); err != nil {
			t.Fatalf("%v: the connection did not go on: %v", l.fault, err)
		}
		s.expect(i+1, l.fault)
		if n := struck.Load(); n != 1 {
			t.Errorf("%v struck %d times, want once", l.fault, n)
		}
	}
}

// The server usually sends a statement's completion together with the ReadyForQuery that follows the commit. A notice
// raised by a deferred trigger, in the commit, makes the server send it early.
func TestAfterWithoutATransactionIsAfterItsCommit(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	s.exec(`CREATE FUNCTION :s.slow() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE NOTICE 'in the commit'; PERFORM pg_sleep(0.1); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON :s.r DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION :s.slow()`)
	s.proxy.Set(Fault{Statement: "put", When: After, Do: Call(func() {
		var got int
		err := s.direct.QueryRow(t.Context(), s.sql("SELECT v FROM :s.r WHERE id = 1")).Scan(&got)
		if err != nil || got != 5 {
			t.Errorf("after the statement others see %d (%v), want its commit: 5", got, err)
		}
	})})
	if _, err := s.through().Exec(t.Context(), s.sql("-- name: put\nUPDATE :s.r SET v = $1"), 5); err == nil {
		t.Error("Call cuts, and the client saw no error")
	}
	s.expectFired("put 1 after: call")
}

func TestTwoFaultsStrikeOneStatement(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	const each = 30 * time.Millisecond
	s.proxy.Set(
		Fault{Statement: "put", When: Before, Do: Delay(each)},
		Fault{Statement: "put", When: After, Do: Delay(each)},
		Fault{Statement: "put", When: After, Do: Cut}) // the first for a moment wins
	began := time.Now()
	if err := s.batch(s.through(), 1); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 4*each {
		t.Errorf("two passings with two delays of %v took %v", each, took)
	}
	s.expectFired("put 1 before: delay 30ms", "put 1 after: delay 30ms", "put 2 before: delay 30ms",
		"put 2 after: delay 30ms")
}

func TestRefusedStatementHasAnAfterAndSkippedOnesDoNot(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	noted := Pause(func() {})
	s.proxy.Set(Fault{Statement: "refused", When: After, Do: noted}, Fault{Statement: "put", Do: noted, When: After},
		Fault{Statement: "put", Do: noted}, Fault{Statement: "commit", When: After, Do: noted})
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue("-- name: refused\nSELECT 1 / $1::int", 0)
	batch.Queue(s.sql(putSQL), 1, 1)
	batch.Queue(s.sql(putSQL), 2, 1)
	batch.Queue("commit")
	var refusal *pgconn.PgError
	if err := conn.SendBatch(t.Context(), batch).Close(); !errors.As(err, &refusal) || refusal.Code != "22012" {
		t.Fatalf("got %v, want a division by zero", err)
	}
	s.expectFired("refused 1 after: pause", "put 1 before: pause", "put 2 before: pause")
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatalf("the connection is out of step: %v", err)
	}
	s.proxy.Set()
	if err := s.batch(conn, 3); err != nil {
		t.Fatalf("the connection is out of step: %v", err)
	}
	s.expect(3)
}

func TestRandomBreaksWhatTheSeedSays(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) []string {
		s := newStage(t, Options{Seed: seed})
		s.proxy.Random(0.3, Cut)
		for i := range 20 {
			_ = s.batch(s.through(), i+1)
		}
		return s.proxy.Fired()
	}
	first, again, other := run(1), run(1), run(2)
	if len(first) < 5 || !slices.Equal(first, again) {
		t.Errorf("the same seed broke\n%q and\n%q", first, again)
	}
	if slices.Equal(first, other) {
		t.Errorf("two seeds broke the same: %q", first)
	}
}
