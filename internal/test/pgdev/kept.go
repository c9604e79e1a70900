package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Keep returns the private server called name, whose data stays after its end. It starts the server, or joins a
// running one that a different process has started; a server ends with the process that started it. If DATABASE_URL
// names a server Keep returns that one. name has lower-case letters, digits, hyphens and underscores.
func Keep(ctx context.Context, name string, log io.Writer) (*Server, error) {
	if url := os.Getenv("DATABASE_URL"); url != "" {
		return given(ctx, url)
	}
	h, err := keptHome(name)
	if err != nil {
		return nil, err
	}
	s := &Server{home: h}
	if s.joined(ctx) {
		return s, nil
	}
	unlock, err := lockAt(filepath.Join(h.dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.joined(ctx) { // a different process has started it by now
		return s, nil
	}
	if s.binDir, err = machinePlaces().binaries(ctx, log, h.version()); err != nil {
		return nil, err
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.reopen(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Joined reports whether a different process has started the server, which ends with that process.
func (s *Server) Joined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.home.kept && s.guard == nil
}

// Outlive waits until a joined server has ended with the process that had started it. Then it starts the server
// again, or joins it if a different process was faster, and reports that in log. If ctx ends first it returns the
// cause.
func (s *Server) Outlive(ctx context.Context, log io.Writer) (*Server, error) {
	for pid, _ := s.home.postmaster(); pid != 0 && isAlive(pid); pid, _ = s.home.postmaster() {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(endsLooked):
		}
	}
	name := strings.TrimPrefix(filepath.Base(s.home.dir), keptPrefix())
	fmt.Fprintf(log, "The program that had started the private Postgres %s has ended, and the Postgres with it. "+
		"Starting it again.\n", name)
	next, err := Keep(ctx, name, log)
	if err == nil && next.dsn != s.dsn {
		err = errors.Join(fmt.Errorf("its port is taken, and it has a new one: %s", next.dsn), next.Stop())
	}
	if err != nil {
		return nil, fmt.Errorf("the private Postgres %s has ended with the program that had started it; start this "+
			"program again: %w", name, err)
	}
	return next, nil
}

const endsLooked = time.Second

// keptPrefix returns the prefix of the directories of all kept servers of this user.
func keptPrefix() string { return "edda-pg-" + strconv.Itoa(os.Getuid()) + "-" }

// keptHome returns a permanent directory of the user.
func keptHome(name string) (home, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(name) > mostName {
		return home{}, fmt.Errorf("the name of a server is %.80q: want 1 to %d lower-case letters, digits, hyphens "+
			"and underscores", name, mostName)
	}
	credential, err := serverCredential()
	if err != nil {
		return home{}, err
	}
	bases := []string{"/var/tmp"} // files there outlive a restart of the machine
	if dir, err := os.UserCacheDir(); err == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return home{}, fmt.Errorf("make a directory for the server: %w", err)
		}
		bases = append([]string{dir}, bases...)
	}
	base, err := homeBase(bases, credential != nil)
	if err != nil {
		return home{}, err
	}
	dir := filepath.Join(base, keptPrefix()+name)
	h := home{dir: dir, credential: credential, kept: true}
	if err := os.Mkdir(h.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return home{}, fmt.Errorf("make a directory for the server: %w", err)
	}
	return h, h.give()
}

const mostName = 20 // the path of the server's socket has a limited length

// joined reports whether the server is running already.
func (s *Server) joined(ctx context.Context) bool {
	_, port := s.home.postmaster()
	if port == 0 {
		return false
	}
	s.port = port
	s.dsn = s.dsnOf("edda")
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	name, err := s.clusterName(ctx)
	return err == nil && name == s.home.name()
}

// version returns the major version of the data, or anyVersion if there is no data.
func (h home) version() int {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "PG_VERSION"))
	if err != nil {
		return anyVersion
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text))) // Postgres wrote it
	return major
}

// postmaster returns the process of the server and its port as Postgres has written them, or zeros.
func (h home) postmaster() (pid, port int) {
	const pidLine, portLine = 0, 3
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "postmaster.pid"))
	if err != nil {
		return 0, 0
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) <= portLine {
		return 0, 0
	}
	number := func(line int) int {
		n, err := strconv.Atoi(strings.TrimSpace(lines[line]))
		if err != nil {
			return 0
		}
		return n
	}
	return number(pidLine), number(portLine)
}

const (
	endsWithin = 20 * time.Second // a server that is shutting down
	endsEvery  = 20 * time.Millisecond
)

// awaitEnd waits for a server that is shutting down. It gives up after a while: the file may be an old one with the
// number of an unrelated process, and then Postgres reports that.
func (h home) awaitEnd(ctx context.Context) {
	for end := time.Now().Add(endsWithin); time.Now().Before(end); {
		pid, _ := h.postmaster()
		if pid == 0 || !isAlive(pid) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(endsEvery):
		}
	}
}

// reopen starts the server on its data, and creates missing data.
func (s *Server) reopen(ctx context.Context) error {
	portFile := filepath.Join(s.home.dir, "port")
	s.home.awaitEnd(ctx)
	text, err := os.ReadFile(portFile)
	if err != nil { // its creation was not completed
		if err := os.RemoveAll(s.home.dataDir()); err != nil {
			return fmt.Errorf("remove the files of a server: %w", err)
		}
		o, err := Options{Durable: true}.asAsked()
		if err == nil {
			err = s.create(ctx, o)
		}
		if err != nil {
			return err
		}
		return os.WriteFile(portFile, []byte(strconv.Itoa(s.port)), 0o600)
	}
	if s.port, err = strconv.Atoi(string(text)); err != nil || !isFree(s.port) {
		if s.port, err = freePort(); err != nil {
			return err
		}
	}
	s.dsn = s.dsnOf("edda")
	return s.launch(ctx)
}
