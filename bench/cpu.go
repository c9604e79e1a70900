package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

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
// is on another machine, or there is no /proc, the clock stands still.
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

// procStat is what we need of /proc/<pid>/stat.
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
