package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/pgdev"
)

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return conn
}

func wantClass(t *testing.T, err error, want pg.Class) {
	t.Helper()
	if got := pg.ClassOf(fmt.Errorf("do a thing: %w", err)); got != want || err == nil {
		t.Errorf("class %d, want %d, of %q (%T, SQLSTATE %q)", got, want, err, err, pg.Code(err))
	}
}

// The server's own words for each class, in a transaction where that matters.
func TestClassOfStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want pg.Class
	}{
		{"SELECT 1 / 0", pg.Other},
		{"SELECT 'x'::int", pg.Other},
		{"SELEKT 1", pg.Other},
		{"SELECT * FROM nowhere", pg.Unprepared},
		{"SELECT * FROM nowhere.nothing", pg.Unprepared},
		{"SELECT nothing FROM pg_class", pg.Unprepared},
		{"SELECT nothing()", pg.Unprepared},
		{"CREATE TABLE nowhere.nothing ()", pg.Unprepared},
		{"BEGIN READ ONLY; CREATE TABLE nothing ()", pg.ReadOnly},
		{"SET ROLE pg_monitor; CREATE SCHEMA nothing", pg.Denied},
		{"SET statement_timeout = 1; SELECT pg_sleep(60)", pg.Cancelled},
		{"SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)", pg.Cancelled},
		{"SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)", pg.Lost},
	} {
		_, err := connect(t).Exec(t.Context(), c.sql)
		if got := pg.ClassOf(err); got != c.want {
			t.Errorf("%s\nclass %d, want %d: %v", c.sql, got, c.want, err)
		}
	}
}

// Codes that are dear to provoke are raised by hand.
func TestClassOfCodes(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	for code, want := range map[string]pg.Class{
		"40001": pg.Race, "40P01": pg.Race, "55P03": pg.Busy, "57014": pg.Cancelled,
		"25P03": pg.IdleKilled, "25P04": pg.IdleKilled, "25P02": pg.AbortedAlready, "25006": pg.ReadOnly,
		"57P01": pg.Lost, "57P02": pg.Lost, "57P03": pg.Lost, "57P04": pg.Lost, "57P05": pg.Lost,
		"08000": pg.Lost, "08006": pg.Lost, "08P01": pg.Lost,
		"53000": pg.Exhausted, "53100": pg.Exhausted, "53200": pg.Exhausted, "53300": pg.Exhausted,
		"42P01": pg.Unprepared, "42703": pg.Unprepared, "3F000": pg.Unprepared, "42883": pg.Unprepared,
		"42501": pg.Denied, "ED001": pg.GuardFailed, "42P05": pg.Mispooled, "26000": pg.Mispooled,
		"22P02": pg.Other, "23505": pg.Other, "40002": pg.Other, "54000": pg.Other, "XX000": pg.Other,
		"ED002": pg.Other,
	} {
		_, err := conn.Exec(t.Context(), "DO $$ BEGIN RAISE EXCEPTION 'by hand' USING ERRCODE = '"+code+"'; END $$")
		if pg.Code(err) != code {
			t.Errorf("raised %s, got %v", code, err)
		}
		wantClass(t, err, want)
	}
}

func TestClassOfALockThatIsNotFree(t *testing.T) {
	t.Parallel()
	holder, other := connect(t), connect(t)
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(20250101)"); err != nil {
		t.Fatal(err)
	}
	_, err := other.Exec(t.Context(), "SET lock_timeout = 1; SELECT pg_advisory_lock(20250101)")
	wantClass(t, err, pg.Busy)
}

func TestClassOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), "SELECT 1 / 0")
	wantClass(t, err, pg.Other)
	_, err = tx.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.AbortedAlready)
	wantClass(t, tx.Commit(t.Context()), pg.AbortedAlready) // the server answers ROLLBACK
	_, err = tx.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.Lost) // somebody else ended the transaction
}

// The server ends a session that idles too long in a transaction; the client learns it at the next use.
func TestClassOfAnIdleTransaction(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	if _, err := conn.Exec(t.Context(), "SET idle_in_transaction_session_timeout = 1; BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err := conn.WaitForNotification(t.Context()) // reads until the server hangs up
	wantClass(t, err, pg.IdleKilled)
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.Lost)
}

func TestClassOfAClosedConnection(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	if err := conn.PgConn().Conn().Close(); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.Lost) // the socket is closed
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.Lost) // pgx knows it
}

// An ended context is the caller's doing, whether it ends before a statement, during it, or while waiting
// for a connection of the pool. What pgx then says of the closed connection is Lost.
func TestClassOfAnEndedContext(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	conn := connect(t)
	_, err := conn.Exec(ended, "SELECT 1")
	wantClass(t, err, pg.Other)
	during, stop := context.WithTimeout(t.Context(), time.Second) // long enough to have begun
	defer stop()
	_, err = conn.Exec(during, "SELECT pg_sleep(60)")
	wantClass(t, err, pg.Other)
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pg.Lost)

	pool := pgdev.Pool(t)
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err = pool.Exec(waiting, "SELECT 1")
	wantClass(t, err, pg.Other)
	_, err = pgx.Connect(ended, pgdev.DSN(t))
	wantClass(t, err, pg.Other)
}

func TestClassOfAServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	address := silent.Addr().String()
	config, err := pgx.ParseConfig("postgres://nobody@" + address + "/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnectTimeout = 20 * time.Millisecond
	_, err = pgx.ConnectConfig(t.Context(), config)
	wantClass(t, err, pg.Lost)
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = pgx.ConnectConfig(t.Context(), config)
	wantClass(t, err, pg.Lost)
}

func TestClassOfWhatIsNotTheDatabase(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("a bug"), pgx.ErrNoRows, context.Canceled, context.DeadlineExceeded} {
		if got := pg.ClassOf(err); got != pg.Other {
			t.Errorf("class %d of %v, want Other", got, err)
		}
	}
}

func TestConstraint(t *testing.T) {
	t.Parallel()
	_, err := connect(t).Exec(t.Context(), "CREATE TEMP TABLE t (a int CONSTRAINT never CHECK (false)); INSERT "+
		"INTO t VALUES (1)")
	if got := pg.Constraint(fmt.Errorf("insert: %w", err)); got != "never" {
		t.Errorf("constraint %q of %v", got, err)
	}
	_, err = connect(t).Exec(t.Context(), "SELECT 1 / 0")
	if got := pg.Constraint(err); got != "" {
		t.Errorf("constraint %q of %v", got, err)
	}
}

type answer string

func (a answer) Error() string    { return string(a) }
func (a answer) SQLState() string { return string(a) }

func TestRefusedIsTheServersWord(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		// sent by a session that ends before it commits
		answer("40001"): true, answer("23505"): true, answer("57P01"): true,
		answer("08P01"): false, answer("08006"): false, answer("40003"): false, net.ErrClosed: false,
		context.Canceled: false,
	} {
		if got := pg.Refused(fmt.Errorf("commit: %w", err)); got != want {
			t.Errorf("%v: refused %v, want %v", err, got, want)
		}
	}
}
