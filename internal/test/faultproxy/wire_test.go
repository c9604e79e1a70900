package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// childVariable makes this test binary a child that runs one batch through the
// proxy whose connection string it holds.
const (
	childVariable  = "EDDA_FAULTPROXY_TEST_DSN"
	schemaVariable = "EDDA_FAULTPROXY_TEST_SCHEMA"
)

func runChild(dsn string) int {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err == nil {
		err = runBatch(ctx, conn, os.Getenv(schemaVariable), 6)
	}
	if err != nil {
		return 1
	}
	return 0
}

func TestCallKillsAProcessAtTheMoment(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []When{Before, After} {
		t.Run(when.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{})
			child := exec.Command(self)
			child.Env = append(os.Environ(), childVariable+"="+s.proxy.DSN(pgdev.DSN(t)), schemaVariable+"="+s.schema)
			var said bytes.Buffer
			child.Stdout, child.Stderr = &said, &said
			started := make(chan *os.Process, 1)
			s.proxy.Set(Fault{Statement: "commit", N: 1, When: when, Do: Call(func() { _ = (<-started).Kill() })})
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			started <- child.Process
			_ = child.Wait()
			if status := child.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
				status.Signal() != syscall.SIGKILL {
				t.Errorf("the child ended with %v, want killed\n%s", child.ProcessState, said.String())
			}
			want := 0
			if when == After {
				want = 6
			}
			s.expect(want, "killed ", when, " commit")
			s.expectFired("commit 1 " + when.String() + ": call")
		})
	}
}

func TestLargePipelinesPassWithAFaultInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	body := strings.Repeat("x", 50_000)
	s.proxy.Set(Fault{Statement: "echo", N: 100, Do: Pause(func() {})},
		Fault{Statement: "echo", N: 150, When: After, Do: Pause(func() {})})
	batch := &pgx.Batch{}
	const statements = 300
	for range statements {
		batch.Queue("-- name: echo\nSELECT $1::text", body)
	}
	results := conn.SendBatch(t.Context(), batch)
	for i := range statements {
		var got string
		if err := results.QueryRow().Scan(&got); err != nil || got != body {
			t.Fatalf("statement %d: %d bytes came back (%v), want %d", i, len(got), err, len(body))
		}
	}
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	s.expectFired("echo 100 before: pause", "echo 150 after: pause")
}

func TestCopyCancelAndNotifyPass(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	ctx := t.Context()

	rows := [][]any{{11, 1}, {12, 1}}
	if n, err := conn.CopyFrom(ctx, pgx.Identifier{s.schema, "r"}, []string{"id", "v"},
		pgx.CopyFromRows(rows)); err != nil || n != 2 {
		t.Errorf("copy: %d rows, %v", n, err)
	}

	s.proxy.Set(Fault{Statement: "slow", Do: Pause(func() {})})
	slow := make(chan error, 1)
	pid := conn.PgConn().PID()
	go func() {
		_, err := conn.Exec(ctx, "-- name: slow\nSELECT pg_sleep(60)")
		slow <- err
	}()
	for active := false; !active; {
		err := s.direct.QueryRow(ctx, "SELECT coalesce((SELECT state = 'active' AND wait_event = 'PgSleep' FROM "+
			"pg_stat_activity WHERE pid = $1), false)", pid).Scan(&active)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.PgConn().CancelRequest(ctx); err != nil {
		t.Error(err)
	}
	var cancelled *pgconn.PgError
	if err := <-slow; !errors.As(err, &cancelled) || cancelled.Code != "57014" {
		t.Errorf("the cancelled query returned %v, want SQLSTATE 57014", err)
	}

	if _, err := conn.Exec(ctx, s.sql("LISTEN :s")); err != nil {
		t.Fatal(err)
	}
	s.exec("NOTIFY :s, 'hello'")
	if n, err := conn.WaitForNotification(ctx); err != nil || n.Payload != "hello" {
		t.Errorf("notification %v, %v", n, err)
	}
}

func TestFlushWithoutSyncIsAnsweredWithAFaultAfter(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	s.proxy.Set(Fault{Statement: "one", When: After, Do: Pause(func() {})})
	pipeline := conn.PgConn().StartPipeline(t.Context())
	pipeline.SendQueryParams("-- name: one\nSELECT 1", nil, nil, nil, nil)
	pipeline.SendFlushRequest()
	if err := pipeline.Flush(); err != nil {
		t.Fatal(err)
	}
	results, err := pipeline.GetResults()
	if err != nil {
		t.Fatal(err)
	}
	if reader, ok := results.(*pgconn.ResultReader); !ok || len(reader.Read().Rows) != 1 {
		t.Errorf("got %T before the Sync, want the row", results)
	}
	if err := errors.Join(pipeline.Sync(), pipeline.Close()); err != nil {
		t.Error(err)
	}
	s.expectFired("one 1 after: pause")
}

func TestEncryptionIsDeclined(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	preferTLS := strings.Replace(s.proxy.DSN(pgdev.DSN(t)), "sslmode=disable", "sslmode=prefer", 1)
	if err := dial(t, preferTLS).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseCutsWhatIsOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{})
	conn := s.through()
	s.proxy.Set(Fault{Statement: "begin", Do: Delay(1 << 60)})
	cut := make(chan error, 1)
	go func() { cut <- s.batch(conn, 1) }()
	for len(s.proxy.Fired()) == 0 {
		if err := s.direct.Ping(t.Context()); err != nil { // a round trip as a pause
			t.Fatal(err)
		}
	}
	if err := s.proxy.Close(); err != nil {
		t.Error(err)
	}
	if err := <-cut; err == nil {
		t.Error("the client saw no error")
	}
	if _, err := pgx.Connect(t.Context(), s.proxy.DSN(pgdev.DSN(t))); err == nil {
		t.Error("a closed proxy took a connection")
	}
}

func TestStatementNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"-- name: take\nSELECT 1":               "take",
		"  --name:take  \r\nSELECT 1":           "take",
		"-- why it is so\n-- name: take\nBEGIN": "take",
		"-- a comment\nCommit;":                 "commit",
		"BEGIN":                                 "begin",
		"begin isolation level serializable":    "begin",
		"START TRANSACTION":                     "begin",
		"COMMIT;":                               "commit",
		"rollback":                              "rollback",
		"ROLLBACK TO SAVEPOINT a":               "rollback to",
		"savepoint a":                           "savepoint",
		"RELEASE SAVEPOINT a":                   "release",
		"SELECT 'commit'":                       "",
		"beginning":                             "",
		"-- name: ":                             "",
		"--":                                    "",
		"":                                      "",
	}
	for sql, want := range names {
		if got := statementName(sql); got != want {
			t.Errorf("%q is named %q, want %q", sql, got, want)
		}
	}
}

func TestDSNKeepsAllButTheAddress(t *testing.T) {
	t.Parallel()
	p, err := Listen(t.Context(), "127.0.0.1:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	for _, original := range []string{
		"postgres://ann:secret@db.example:5432/shop?sslmode=require&application_name=x",
		"postgres:///shop?host=/tmp&port=5433&user=ann&password=secret&application_name=x",
		"host=/tmp user=ann password=secret dbname=shop application_name=x",
	} {
		config, err := pgx.ParseConfig(p.DSN(original))
		if err != nil {
			t.Fatal(err)
		}
		got := []string{config.User, config.Password, config.Database, config.RuntimeParams["application_name"]}
		if strings.Join(got, " ") != "ann secret shop x" ||
			net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) != p.Addr() || config.TLSConfig != nil {
			t.Errorf("%s became %s", original, p.DSN(original))
		}
	}
	if _, err := pgx.Connect(t.Context(), p.DSN("postgres://ann@x/shop")); err == nil {
		t.Error("a proxy without a server took a connection")
	}
}
