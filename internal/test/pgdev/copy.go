package pgdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// CopyOptions are the options of Copy.
type CopyOptions struct {
	Settings map[string]string // in addition to those of the first server; these take precedence
	// Follow makes it a standby of the first server. Otherwise it recovers by the restore_command of Settings, if
	// there is one, and else has the state of the base backup.
	Follow bool
}

// Copy makes a second private server from a base backup of a private one, on disk. Start runs it.
func (s *Server) Copy(ctx context.Context, o CopyOptions) (*Server, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	h, err := newHome(true)
	if err != nil {
		return nil, err
	}
	c := &Server{home: h, binDir: s.binDir, env: s.env}
	if err := c.takeFrom(ctx, s, o); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the server: %w", err), c.Stop(), os.RemoveAll(h.dir))
	}
	return c, nil
}

func (s *Server) takeFrom(ctx context.Context, from *Server, o CopyOptions) (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	s.dsn = s.dsnOf("edda")
	command := []string{filepath.Join(s.binDir, "pg_basebackup"), "-D", s.home.dataDir(), "-c", "fast", "-X", "stream",
		"-d", "host=127.0.0.1 user=edda port=" + strconv.Itoa(from.port)}
	if o.Follow {
		command = append(command, "-R")
	}
	if o.Settings["restore_command"] != "" { // the file belongs to the server's user, like the data
		command = append([]string{"sh", "-c", `"$@" && touch "$0"`,
			filepath.Join(s.home.dataDir(), "recovery.signal")}, command...)
	}
	if s.guard, err = watch(s.home, "TERM", command...); err != nil {
		return err
	}
	exit, err := s.awaitExit(ctx)
	if err != nil {
		return err
	}
	if exit != "exit status 0" {
		return fmt.Errorf("pg_basebackup: %s; %s", exit, s.home.logTail())
	}
	return writeSettings(s.home, s.port, Options{Durable: true, Settings: o.Settings})
}

// Start runs a server that Copy has made, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	return s.launch(ctx)
}

// Shut stops a private server in the given mode, and leaves its data. Start runs it again.
func (s *Server) Shut(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	return s.shut(ctx, mode)
}

// Promote makes a standby accept writes, and returns when it does.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var done bool
	if err := conn.QueryRow(ctx, "SELECT pg_promote()").Scan(&done); err != nil {
		return err
	}
	if !done {
		return errors.New("promote the standby: it has not answered in time")
	}
	return nil
}
