package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options are the options of Start. The zero value is a private or given server for tests.
type Options struct {
	Durable  bool              // on disk, fsync and full_page_writes on: for benchmarks, crash tests and demos
	Settings map[string]string // more settings for postgresql.conf; these override ours
	Log      io.Writer         // gets a line for each slow step, such as apt-get install; nil is os.Stderr
	Private  bool              // ignore DATABASE_URL, because the caller restarts the server
	Env      []string          // "NAME=value" for a private server's processes, in addition to ours
	Locale   string            // a locale of ICU, by which databases sort text; "" sorts bytes. See LocaleVariable
	// settings of the role, in force if a connection sets no others. See DefaultsVariable
	Defaults map[string]string
}

// Mode is how Restart stops the server.
type Mode int

const (
	// Fast ends sessions and shuts down in order.
	Fast Mode = iota
	// Immediate ends all processes at once; the server recovers from its log
	// when it comes back, as after a crash.
	Immediate
)

// readyWithin bounds a start or a restart whose context has no deadline.
const readyWithin = time.Minute

// Server is a Postgres that was given by DATABASE_URL or was started by us. Keep it referenced until Stop: a private
// server ends when its Server is garbage collected.
type Server struct {
	dsn    string
	port   int
	home   home
	binDir string
	env    []string

	mu    sync.Mutex // guards guard
	guard *guard     // nil: given by DATABASE_URL, or stopped
}

// Start returns the server that DATABASE_URL names, or starts a private one. If no Postgres can be found, the error
// lists the remedies.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.asAsked()
	if err != nil {
		return nil, err
	}
	if url := os.Getenv("DATABASE_URL"); url != "" && !o.Private {
		return given(ctx, url)
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	binDir, err := machinePlaces().binaries(ctx, o.Log, anyVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	h, err := newHome(o.Durable)
	if err != nil {
		return nil, err
	}
	s := &Server{home: h, binDir: binDir, env: o.Env}
	if err := s.create(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// given checks that the server of DATABASE_URL answers, so that the first test that fails reports it.
func given(ctx context.Context, url string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to the server DATABASE_URL names (unset it to use a private one): %w", err)
	}
	return &Server{dsn: url}, conn.Close(ctx)
}

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, readyWithin)
}

// create fills the home, starts the server and creates the database. The caller is Start.
func (s *Server) create(ctx context.Context, o Options) error {
	if err := s.makeData(ctx, o); err != nil {
		return err
	}
	s.dsn = s.dsnOf("edda")
	if err := s.launch(ctx); err != nil {
		return err
	}
	return s.createDatabase(ctx, o.Defaults)
}

// makeData creates the data of a server that has not run, and chooses its port.
func (s *Server) makeData(ctx context.Context, o Options) error {
	if err := s.startInitdb(o.Locale); err != nil {
		return errors.Join(err, os.RemoveAll(s.home.dir))
	}
	exit, err := s.awaitExit(ctx)
	if err != nil {
		return err
	}
	if exit != "exit status 0" {
		return fmt.Errorf("initdb: %s; %s", exit, s.home.logTail())
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	return writeSettings(s.home, s.port, o)
}

func (s *Server) startInitdb(locale string) (err error) {
	command := []string{filepath.Join(s.binDir, "initdb"), "-D", s.home.dataDir(), "-U", "edda", "-A", "trust", "-E",
		"UTF8", "--no-locale", "-N"}
	if locale != "" {
		command = append(command, "--locale-provider=icu", "--icu-locale="+locale)
	}
	s.guard, err = watch(s.home, "TERM", command...)
	return err
}

func (s *Server) dsnOf(database string) string {
	return "postgres://edda@127.0.0.1:" + strconv.Itoa(s.port) + "/" + database + "?sslmode=disable"
}

// freePort returns a port below the ranges that systems use for outgoing connections: no client can occupy it while
// the server restarts, and no client can connect to itself while the server is down.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := 15000 + rand.IntN(15000)
		if last = listens(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// listens returns an error if no program can listen on a port.
func listens(port int) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func isFree(port int) bool { return listens(port) == nil }

// launch starts the server on its home, takes over from the previous guard, and waits until the server answers.
func (s *Server) launch(ctx context.Context) error {
	command := append([]string{"env"}, s.env...) // env becomes the server: the process is the same
	command = append(command, filepath.Join(s.binDir, "postgres"), "-D", s.home.dataDir(), "-p", strconv.Itoa(s.port))
	signal := "QUIT"
	if s.home.kept {
		signal = "INT" // its data is read again
	}
	next, err := watch(s.home, signal, command...)
	if err != nil {
		return err
	}
	before := s.guard
	s.guard = next
	if before != nil {
		if err := before.handOver(); err != nil {
			return fmt.Errorf("take over from the watcher before: %w", err)
		}
	}
	return s.awaitReady(ctx)
}

// awaitReady returns when our server answers a query. A different server may have taken the port a moment before
// ours, hence the name.
func (s *Server) awaitReady(ctx context.Context) error {
	const pause = 20 * time.Millisecond
	var last error
	for {
		if exit, ended := s.guard.ended(pause); ended {
			return fmt.Errorf("postgres ended at its start: %s; %s", exit, s.home.logTail())
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for postgres: %w (last answer: %v); %s", context.Cause(ctx), last, s.home.logTail())
		}
		var name string
		if name, last = s.clusterName(ctx); last == nil && name == s.home.name() {
			return nil
		}
	}
}

func (s *Server) clusterName(ctx context.Context) (name string, err error) {
	conn, err := pgx.Connect(ctx, s.dsnOf("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	return name, conn.QueryRow(ctx, "SHOW cluster_name").Scan(&name)
}

func (s *Server) createDatabase(ctx context.Context, defaults map[string]string) error {
	conn, err := pgx.Connect(ctx, s.dsnOf("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the new server: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE edda"); err != nil {
		return fmt.Errorf("create database edda: %w", err)
	}
	for name, value := range defaults {
		_, err := conn.Exec(ctx, "ALTER ROLE edda IN DATABASE edda SET "+pgx.Identifier{name}.Sanitize()+" = "+
			quoted(value))
		if err != nil {
			return fmt.Errorf("set the default %s = %q: %w", name, value, err)
		}
	}
	return nil
}

// awaitExit waits until the guarded command has ended by itself.
func (s *Server) awaitExit(ctx context.Context) (string, error) {
	for {
		if exit, ended := s.guard.ended(20 * time.Millisecond); ended {
			return exit, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("wait for the command to end: %w; %s", context.Cause(ctx), s.home.logTail())
		}
	}
}

// DSN returns the connection string of the database edda, or DATABASE_URL as given. It stays the same over a Restart.
func (s *Server) DSN() string { return s.dsn }

// LogTail returns the end of the log of a private server, for a failure that only the server can explain. It is empty
// for the server of DATABASE_URL, and after Stop.
func (s *Server) LogTail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return ""
	}
	return s.home.logTail()
}

// CountInLog returns how many lines of a private server's log contain the text, including lines from before a
// Restart. The log is in English.
func (s *Server) CountInLog(text string) (int, error) {
	log, err := os.ReadFile(s.home.logFile())
	if err != nil {
		return 0, fmt.Errorf("read the server's log: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n, nil
}

// Stop ends a private server at once and removes all its files. It does nothing to the server of DATABASE_URL, and a
// second call does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return nil
	}
	err := s.guard.close()
	s.guard = nil
	if err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}

// shut stops the server, whose guard stays. The caller holds mu.
func (s *Server) shut(ctx context.Context, mode Mode) error {
	signal := "INT"
	if mode == Immediate {
		signal = "QUIT"
	}
	if err := s.guard.signal(signal); err != nil {
		return fmt.Errorf("request the watcher to stop the server: %w", err)
	}
	_, err := s.awaitExit(ctx)
	return err
}

// Restart stops a private server in the given mode and starts it again on the same port and data. It fails for the
// server of DATABASE_URL: use a Private one.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return errors.New("restart: the server is stopped, or is the one DATABASE_URL names and not ours; start " +
			"one with Options.Private")
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.shut(ctx, mode); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return nil
}
