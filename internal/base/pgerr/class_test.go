package pgerr_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
)

func wantClass(t *testing.T, err error, want pgerr.Class) {
	t.Helper()
	if got := pgerr.ClassOf(fmt.Errorf("do a thing: %w", err)); got != want || err == nil {
		t.Errorf("class %d, want %d, of %q (%T, SQLSTATE %q)", got, want, err, err, pgerr.Code(err))
	}
}

// The server's own errors for each class, in a transaction where that matters.
func TestClassOfStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want pgerr.Class
	}{
		{"SELECT 1 / 0", pgerr.Other},
		{"SELECT 'x'::int", pgerr.Other},
		{"SELEKT 1", pgerr.Other},
		{"SELECT * FROM nowhere", pgerr.Unprepared},
		{"SELECT * FROM nowhere.nothing", pgerr.Unprepared},
		{"SELECT nothing FROM pg_class", pgerr.Unprepared},
		{"SELECT nothing()", pgerr.Unprepared},
		{"CREATE TABLE nowhere.nothing ()", pgerr.Unprepared},
		{"BEGIN READ ONLY; CREATE TABLE nothing ()", pgerr.ReadOnly},
		{"SET ROLE pg_monitor; CREATE SCHEMA nothing", pgerr.Denied},
		{"SET statement_timeout = 1; SELECT pg_sleep(60)", pgerr.Cancelled},
		{"SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)", pgerr.Cancelled},
		{"SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)", pgerr.Lost},
	} {
		_, err := pgdev.Connect(t).Exec(t.Context(), c.sql)
		if got := pgerr.ClassOf(err); got != c.want {
			t.Errorf("%s\nclass %d, want %d: %v", c.sql, got, c.want, err)
		}
	}
}

// Codes that are expensive to provoke are raised directly.
func TestClassOfCodes(t *testing.T) {
	t.Parallel()
	conn := pgdev.Connect(t)
	for code, want := range map[string]pgerr.Class{
		"40001": pgerr.Race, "40P01": pgerr.Race, "55P03": pgerr.Busy, "57014": pgerr.Cancelled,
		"25P03": pgerr.IdleKilled, "25P04": pgerr.IdleKilled, "25P02": pgerr.AbortedAlready, "25006": pgerr.ReadOnly,
		"57P01": pgerr.Lost, "57P02": pgerr.Lost, "57P03": pgerr.Lost, "57P04": pgerr.Lost, "57P05": pgerr.Lost,
		"08000": pgerr.Lost, "08006": pgerr.Lost, "08P01": pgerr.Lost,
		"53000": pgerr.Exhausted, "53100": pgerr.Exhausted, "53200": pgerr.Exhausted, "53300": pgerr.Exhausted,
		"42P01": pgerr.Unprepared, "42703": pgerr.Unprepared, "3F000": pgerr.Unprepared, "42883": pgerr.Unprepared,
		"42501": pgerr.Denied, "ED001": pgerr.GuardFailed, "42P05": pgerr.Mispooled, "26000": pgerr.Mispooled,
		"22P02": pgerr.Other, "23505": pgerr.Other, "40002": pgerr.Other, "54000": pgerr.Other, "XX000": pgerr.Other,
		"ED002": pgerr.Other,
	} {
		_, err := conn.Exec(t.Context(), "DO $$ BEGIN RAISE EXCEPTION 'by hand' USING ERRCODE = '"+code+"'; END $$")
		if pgerr.Code(err) != code {
			t.Errorf("raised %s, got %v", code, err)
		}
		wantClass(t, err, want)
	}
}

func TestClassOfALockThatIsNotFree(t *testing.T) {
	t.Parallel()
	holder, other := pgdev.Connect(t), pgdev.Connect(t)
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(20250101)"); err != nil {
		t.Fatal(err)
	}
	_, err := other.Exec(t.Context(), "SET lock_timeout = 1; SELECT pg_advisory_lock(20250101)")
	wantClass(t, err, pgerr.Busy)
}

func TestClassOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	conn := pgdev.Connect(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), "SELECT 1 / 0")
	wantClass(t, err, pgerr.Other)
	_, err = tx.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.AbortedAlready)
	wantClass(t, tx.Commit(t.Context()), pgerr.AbortedAlready) // the server answers ROLLBACK
	_, err = tx.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.Lost) // a different session ended the transaction
}

// The server ends a session that idles too long in a transaction; the client notices at the next use.
func TestClassOfAnIdleTransaction(t *testing.T) {
	t.Parallel()
	conn := pgdev.Connect(t)
	if _, err := conn.Exec(t.Context(), "SET idle_in_transaction_session_timeout = 1; BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err := conn.WaitForNotification(t.Context()) // reads until the server hangs up
	wantClass(t, err, pgerr.IdleKilled)
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.Lost)
}

func TestClassOfAClosedConnection(t *testing.T) {
	t.Parallel()
	conn := pgdev.Connect(t)
	if err := conn.PgConn().Conn().Close(); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.Lost) // the socket is closed
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.Lost) // pgx has noticed it
}

// An ended context is the caller's doing, whether it ends before a statement, during it, or while waiting for a
// connection of the pool. The error that pgx then returns for the closed connection is Lost.
func TestClassOfAnEndedContext(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	conn := pgdev.Connect(t)
	_, err := conn.Exec(ended, "SELECT 1")
	wantClass(t, err, pgerr.Other)
	during, stop := context.WithTimeout(t.Context(), time.Second) // long enough to have begun
	defer stop()
	_, err = conn.Exec(during, "SELECT pg_sleep(60)")
	wantClass(t, err, pgerr.Other)
	_, err = conn.Exec(t.Context(), "SELECT 1")
	wantClass(t, err, pgerr.Lost)

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
	wantClass(t, err, pgerr.Other)
	_, err = pgx.Connect(ended, pgdev.DSN(t))
	wantClass(t, err, pgerr.Other)
}

func TestClassOfAServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and never answers
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
	wantClass(t, err, pgerr.Lost)
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = pgx.ConnectConfig(t.Context(), config)
	wantClass(t, err, pgerr.Lost)
}

func TestClassOfWhatIsNotTheDatabase(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("a bug"), pgx.ErrNoRows, context.Canceled, context.DeadlineExceeded} {
		if got := pgerr.ClassOf(err); got != pgerr.Other {
			t.Errorf("class %d of %v, want Other", got, err)
		}
	}
}

func TestConstraint(t *testing.T) {
	t.Parallel()
	_, err := pgdev.Connect(t).Exec(t.Context(), "CREATE TEMP TABLE t (a int CONSTRAINT never CHECK (false)); INSERT "+
		"INTO t VALUES (1)")
	if got := pgerr.Constraint(fmt.Errorf("insert: %w", err)); got != "never" {
		t.Errorf("constraint %q of %v", got, err)
	}
	_, err = pgdev.Connect(t).Exec(t.Context(), "SELECT 1 / 0")
	if got := pgerr.Constraint(err); got != "" {
		t.Errorf("constraint %q of %v", got, err)
	}
}

type answer string

func (a answer) Error() string    { return string(a) }
func (a answer) SQLState() string { return string(a) }

func TestRefusedIsTheServersWord(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		// codes sent by a session that ends before it commits
		answer("40001"): true, answer("23505"): true, answer("57P01"): true,
		answer("08P01"): false, answer("08006"): false, answer("40003"): false, net.ErrClosed: false,
		context.Canceled: false,
	} {
		if got := pgerr.Refused(fmt.Errorf("commit: %w", err)); got != want {
			t.Errorf("%v: refused %v, want %v", err, got, want)
		}
	}
}
