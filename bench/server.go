package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settings fit a server under load for minutes: no checkpoint falls into a run, and nothing is cheated.
var settings = map[string]string{
	"shared_buffers":     "1GB",
	"max_wal_size":       "8GB",
	"checkpoint_timeout": "30min",
	"synchronous_commit": "on",
	"autovacuum":         "on",
}

// startServer starts a durable Postgres of our own, or takes the one DATABASE_URL names. The lateness of schedule is
// computed from the times of commits, which a server records only if it is configured to.
func startServer(ctx context.Context, log io.Writer, commitTimes bool) (*pgdev.Server, *pgxpool.Pool, error) {
	settings := maps.Clone(settings)
	if commitTimes {
		settings["track_commit_timestamp"] = "on"
	}
	server, err := pgdev.Start(ctx, pgdev.Options{Durable: true, Settings: settings, Log: log})
	if err != nil {
		return nil, nil, err
	}
	db, err := pgxpool.New(ctx, server.DSN())
	if err == nil {
		err = durable(ctx, db)
	}
	if err == nil && commitTimes {
		err = mustBeOn(ctx, db, "track_commit_timestamp")
	}
	return server, db, err
}

// durable refuses a server that confirms commits it may lose: its figures would mean nothing.
func durable(ctx context.Context, db *pgxpool.Pool) error {
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if err := mustBeOn(ctx, db, name); err != nil {
			return err
		}
	}
	return nil
}

func mustBeOn(ctx context.Context, db *pgxpool.Pool, name string) error {
	value, err := show(ctx, db, name)
	if err == nil && value != "on" {
		err = fmt.Errorf("the server has %s = %s; benchmarks run with on", name, value)
	}
	return err
}

// show reads a setting of the server.
func show(ctx context.Context, db *pgxpool.Pool, name string) (value string, err error) {
	err = db.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

// deadlocks is the server's own count of them in this database since it began.
func deadlocks(ctx context.Context, db *pgxpool.Pool) (n int64, err error) {
	err = db.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	return n, err
}

// describe reads the settings of the server that explain the figures.
func describe(ctx context.Context, db *pgxpool.Pool) (map[string]string, error) {
	facts := map[string]string{}
	for _, name := range []string{"server_version", "shared_buffers", "max_wal_size", "synchronous_commit"} {
		value, err := show(ctx, db, name)
		if err != nil {
			return nil, err
		}
		facts[name] = value
	}
	return facts, nil
}

// Processor time per message is the figure to trust on a machine that has other things to do.

// clientCPU is the processor time of this process and of the worker processes that have ended.
func clientCPU() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// tick is the unit of /proc/<pid>/stat, which is the same on every Linux we know.
const tick = 10 * time.Millisecond

// serverCPU returns a clock of all processes of the server, ended ones included. Where the server
// is on a different machine, or there is no /proc, the clock does not move.
func serverCPU(ctx context.Context, db *pgxpool.Pool) func() time.Duration {
	still := func() time.Duration { return 0 }
	var backend int
	if err := db.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return still
	}
	stat, err := readStat(strconv.Itoa(backend))
	if err != nil || !strings.HasPrefix(stat.name, "postgres") {
		return still
	}
	return func() time.Duration { return familyCPU(stat.parent) }
}

// familyCPU is the processor time of the postmaster and of its children, living and ended. A child
// that ends between two readings would be missed or counted twice, so that the sum is then taken again.
func familyCPU(postmaster int) time.Duration {
	var sum time.Duration
	for range 10 {
		root, err := readStat(strconv.Itoa(postmaster))
		if err != nil {
			return 0
		}
		sum = root.own + root.children
		pids, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range pids {
			if s, err := readStat(filepath.Base(dir)); err == nil && s.parent == postmaster {
				sum += s.own
			}
		}
		if again, err := readStat(strconv.Itoa(postmaster)); err == nil && again.children == root.children {
			break
		}
	}
	return sum
}

// procStat holds the fields that we need of /proc/<pid>/stat.
type procStat struct {
	name          string
	parent        int
	own, children time.Duration
}

func readStat(pid string) (procStat, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return procStat{}, err
	}
	_, rest, _ := strings.Cut(string(text), "(")
	name, rest, _ := strings.Cut(rest, ") ")
	fields := strings.Fields(rest) // from field 3, the state, on
	if len(fields) < 15 {
		return procStat{}, fmt.Errorf("process %s: short stat", pid)
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(fields[field-3], 10, 64)
		return n
	}
	return procStat{
		name:     name,
		parent:   int(number(4)),
		own:      time.Duration(number(14)+number(15)) * tick,
		children: time.Duration(number(16)+number(17)) * tick,
	}, nil
}
