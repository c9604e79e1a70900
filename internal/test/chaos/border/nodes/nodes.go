// Package nodes has what the brokers of tests and scenarios have in common: they run as processes of their own, each
// node on ports that it keeps through all its lives.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Nodes are the processes of a broker. A test or a scenario kills, freezes and restarts them by their numbers, from 0.
type Nodes interface {
	members
	struck
	URL() string // of all nodes, for clients
	Stop() error // ends all nodes and removes their files
}

type members interface {
	Nodes() int // how many there are, killed ones included

	// Leader is the node that leads a stream. It waits for an election that is under way.
	Leader(ctx context.Context, stream string) (int, error)
}

type struck interface {
	// Kill sends SIGKILL, and returns when the process is gone. It is an error when the node is down already.
	Kill(node int) error

	// Restart starts a node that was killed, with the files it left, and returns when it is well.
	Restart(ctx context.Context, node int) error

	// Freeze sends SIGSTOP: the connections stay, and nothing answers on them, as in a network that is cut. A node that
	// is down hears nothing.
	Freeze(node int)

	// Thaw wakes a frozen node, and returns when it is well.
	Thaw(ctx context.Context, node int) error
}

const readyWithin = time.Minute // of a wait whose context has no deadline

// Await tries until it succeeds or the time is over, and then returns the last error.
func Await(ctx context.Context, try func(ctx context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		bounded, cancel := context.WithTimeout(ctx, readyWithin)
		defer cancel()
		ctx = bounded
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// Start makes three attempts: another program may have taken a port before its node could.
func Start[T Nodes](ctx context.Context, attempt func(ctx context.Context) (T, error)) (n T, err error) {
	var failed error
	for range 3 {
		if n, err = attempt(ctx); err == nil {
			return n, nil
		}
		if failed = errors.Join(failed, err); ctx.Err() != nil {
			break
		}
	}
	return n, failed
}

// Of is for a test, which ends the nodes.
func Of[T Nodes](t testing.TB, n T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// OwnHost is an address of the loopback that no other broker has, so that the ports of a node that is down stay free.
// Where the loopback has no other address than 127.0.0.1, two brokers share it.
func OwnHost() string {
	host := net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254))).String()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = listener.Close() // it has no connection yet
	return host
}

// FreePorts picks ports below the ranges that systems take for outgoing connections, so that no client sits on one
// while its node is down.
func FreePorts(host string, n int) ([]int, error) {
	var ports []int
	for range 100 * n {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(15000+rand.IntN(15000))))
		if err != nil {
			continue
		}
		defer listener.Close() // held until all are found, or two could be one
		if ports = append(ports, listener.Addr().(*net.TCPAddr).Port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free ports", n)
}

// LogTail is the end of a log, without the lines that contain a text.
func LogTail(path, without string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	if without != "" {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, without) })
	}
	return strings.Join(lines[max(0, len(lines)-30):], "")
}
