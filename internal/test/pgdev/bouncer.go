package pgdev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// BouncerOptions are the options of StartBouncer. The zero value is four sessions, shared transaction by transaction.
type BouncerOptions struct {
	Binary   string            // path of pgbouncer; "" is $PGBOUNCER, or the installed one, or one to install
	Settings map[string]string // more settings for pgbouncer.ini; these override ours
	Log      io.Writer         // as in Options
}

// Bouncer is a PgBouncer in front of one database. Keep it referenced until Stop, like a Server.
type Bouncer struct {
	binary  string
	dsn     string
	version string
	home    home

	mu    sync.Mutex // guards guard
	guard *guard     // nil: stopped
}

// spoiled are settings that a different program has left in every session: names are not found without their schema,
// indexes are forbidden, and values look different as text.
var spoiled = map[string]string{
	"search_path": "pg_temp", "bytea_output": "escape", "extra_float_digits": "-15", "IntervalStyle": "iso_8601",
	"xmloption": "document", "enable_indexscan": "off", "jit_optimize_above_cost": "0",
}

// StartBouncer puts a PgBouncer in transaction mode in front of the server of the database of dsn, which must not
// require a password that is not in dsn. Its clients are trusted, and its sessions are spoiled. If no PgBouncer can be
// found, the error lists the remedies.
func StartBouncer(ctx context.Context, dsn string, o BouncerOptions) (*Bouncer, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if o.Log == nil {
		o.Log = os.Stderr
	}
	binary, err := cmp.Or(o.Binary, os.Getenv("PGBOUNCER")), error(nil)
	if binary == "" {
		binary, err = machinePlaces().pgbouncer(ctx, o.Log)
	}
	if err != nil {
		return nil, err
	}
	h, err := newHome(true)
	if err != nil {
		return nil, err
	}
	b := &Bouncer{binary: binary, home: h}
	if err := b.launch(ctx, dsn, o.Settings); err != nil {
		if b.guard == nil {
			return nil, errors.Join(err, os.RemoveAll(h.dir))
		}
		return nil, errors.Join(fmt.Errorf("%w; %s", err, h.logTail()), b.Stop())
	}
	return b, nil
}

// launch starts the process and waits until a client can connect. The caller is StartBouncer.
func (b *Bouncer) launch(ctx context.Context, dsn string, settings map[string]string) error {
	said, err := exec.CommandContext(ctx, b.binary, "--version").Output()
	if err != nil {
		return fmt.Errorf("read the version of %s: %w", b.binary, err)
	}
	b.version, _, _ = strings.Cut(strings.TrimPrefix(string(said), "PgBouncer "), "\n")
	port, err := freePort()
	if err != nil {
		return err
	}
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("read the connection string of the database behind PgBouncer: %w", err)
	}
	b.dsn = "postgres://" + server.User + "@127.0.0.1:" + strconv.Itoa(port) + "/" + server.Database +
		"?sslmode=disable"
	if err := writeBouncerSettings(b.home, port, server, settings); err != nil {
		return err
	}
	if b.guard, err = b.watch(); err != nil {
		return err
	}
	return b.awaitReady(ctx)
}

func (b *Bouncer) watch() (*guard, error) {
	return watch(b.home, "TERM", b.binary, filepath.Join(b.home.dir, "pgbouncer.ini"))
}

// Restart kills PgBouncer, so that all connections through it break, and starts it again at the same address.
func (b *Bouncer) Restart(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.guard == nil {
		return errors.New("restart pgbouncer: it is stopped")
	}
	if err := b.guard.signal("KILL"); err != nil {
		return fmt.Errorf("kill pgbouncer: %w", err)
	}
	for ended := false; !ended; {
		if _, ended = b.guard.ended(20 * time.Millisecond); !ended && ctx.Err() != nil {
			return fmt.Errorf("wait for the end of pgbouncer: %w", context.Cause(ctx))
		}
	}
	next, err := b.watch()
	if err != nil {
		return err
	}
	before := b.guard
	b.guard = next
	if err := before.handOver(); err != nil {
		return fmt.Errorf("take over from the watcher before: %w", err)
	}
	return b.awaitReady(ctx)
}

// writeBouncerSettings configures few sessions that move from client to client at each transaction, each time to the
// client that has waited longest, so that no client finds the state that it left in a session.
func writeBouncerSettings(h home, port int, server *pgx.ConnConfig, more map[string]string) error {
	settings := map[string]string{
		"listen_addr":               "127.0.0.1",
		"listen_port":               strconv.Itoa(port),
		"unix_socket_dir":           "",
		"auth_type":                 "trust",
		"auth_file":                 filepath.Join(h.dir, "users.txt"),
		"pool_mode":                 "transaction",
		"default_pool_size":         "4",
		"max_client_conn":           "1000",
		"server_round_robin":        "1",
		"server_reset_query":        "",
		"ignore_startup_parameters": "",
		"log_connections":           "0",
		"log_disconnections":        "0",
	}
	maps.Copy(settings, more)
	var text, spoil strings.Builder
	for name, value := range spoiled {
		fmt.Fprintf(&spoil, "SET %s = %s;", name, value)
	}
	fmt.Fprintf(&text, "[databases]\n* = host=%s port=%d connect_query='%s'\n[pgbouncer]\n", server.Host, server.Port,
		spoil.String())
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = %s\n", name, settings[name])
	}
	quoted := func(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` }
	users := quoted(server.User) + " " + quoted(server.Password) + "\n"
	for name, content := range map[string]string{"pgbouncer.ini": text.String(), "users.txt": users} {
		path := filepath.Join(h.dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write PgBouncer's settings: %w", err)
		}
		if h.credential == nil {
			continue
		}
		if err := os.Chown(path, int(h.credential.Uid), int(h.credential.Gid)); err != nil {
			return fmt.Errorf("give PgBouncer's settings to its user: %w", err)
		}
	}
	return nil
}

// awaitReady waits until a client has connected to the database.
func (b *Bouncer) awaitReady(ctx context.Context) error {
	for {
		if exit, ended := b.guard.ended(20 * time.Millisecond); ended {
			return fmt.Errorf("pgbouncer ended at its start: %s", exit)
		}
		conn, err := pgx.Connect(ctx, b.dsn)
		if err == nil {
			err = errors.Join(conn.Ping(ctx), conn.Close(ctx))
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for pgbouncer: %w (last answer: %w)", context.Cause(ctx), err)
		}
	}
}

// DSN returns the connection string of the database by way of PgBouncer. It does not set how queries are to be
// executed.
func (b *Bouncer) DSN() string { return b.dsn }

// Version returns PgBouncer's version, for example 1.18.0.
func (b *Bouncer) Version() string { return b.version }

// Log returns the log of PgBouncer so far; it is empty after Stop.
func (b *Bouncer) Log() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.guard == nil {
		return "", nil
	}
	text, err := os.ReadFile(b.home.logFile())
	if err != nil {
		return "", fmt.Errorf("read PgBouncer's log: %w", err)
	}
	return string(text), nil
}

// Stop ends PgBouncer at once, and removes all its files. A second call does nothing.
func (b *Bouncer) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.guard == nil {
		return nil
	}
	err := b.guard.close()
	b.guard = nil
	if err != nil {
		return fmt.Errorf("stop pgbouncer: %w", err)
	}
	return nil
}
