package pgdev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// deathVariable says how this test binary, run again as a child, is to die.
const deathVariable = "EDDA_PGDEV_TEST_DEATH"

// death is one way for a process to end without calling Stop.
type death struct {
	name   string
	flags  []string  // for the child's test binary
	inside func()    // the actions of the child when its server runs; nil: it hangs
	signal os.Signal // the signal that the test then sends; nil: the child dies by itself
}

var deaths = []death{
	{name: "returns", inside: func() {}},
	{name: "exits", inside: func() { os.Exit(3) }},
	{name: "panics", inside: func() { panic("this panic is part of a test") }},
	{name: "panics in a goroutine", inside: func() { go panic("this panic is part of a test"); select {} }},
	// initdb may take seconds on a busy machine
	{name: "runs out of its time limit", flags: []string{"-test.timeout=12s"}},
	{name: "is killed", signal: syscall.SIGKILL},
	{name: "is interrupted", signal: os.Interrupt},
	{name: "is terminated", signal: syscall.SIGTERM},
	{name: "is asked for its stacks", signal: syscall.SIGQUIT},
}

// TestDie is the child: it starts a server, prints where, and dies as deathVariable says. In a run of its own it has
// nothing to do.
func TestDie(t *testing.T) {
	name := os.Getenv(deathVariable)
	if name == "" {
		return
	}
	if name == deathInInitdb {
		dieInInitdb(t)
	}
	endWhenInterrupted()
	s, err := Start(t.Context(), Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s %s\n", s.home.dir, s.DSN())
	for _, d := range deaths {
		if d.name == name && d.inside != nil {
			d.inside()
			return
		}
	}
	hang(s)
}

// endWhenInterrupted is for tests that a shell without job control runs in the background. Such a shell makes its
// children ignore interrupts, and Go respects that: the child that is to die of an interrupt would never end, and the
// test would not either.
func endWhenInterrupted() {
	if !signal.Ignored(os.Interrupt) {
		return // an interrupt ends the process already
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		<-interrupted
		os.Exit(2)
	}()
}

// hang waits for a signal or the time limit. Its argument stays reachable.
func hang(held any) {
	for range time.Tick(time.Hour) {
		fmt.Fprintln(io.Discard, held)
	}
}

func TestServerEndsWhenItsParent(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			child := startChild(t, d.name, d.flags...)
			conn, err := pgx.Connect(t.Context(), child.dsn)
			if err != nil && d.inside == nil {
				t.Fatalf("the child's server does not answer: %v\n%s", err, child.output())
			}
			if conn != nil {
				defer conn.Close(context.WithoutCancel(t.Context()))
			}
			postmaster := child.postmaster()
			if d.signal != nil {
				if err := child.cmd.Process.Signal(d.signal); err != nil {
					t.Fatal(err)
				}
			}
			child.awaitNothingLeft(postmaster)
		})
	}
}

// A server that is stopped in its first milliseconds may lose the signal. The command of this test loses one.
func TestGuardSendsItsSignalUntilTheCommandEnds(t *testing.T) {
	t.Parallel()
	h, err := newHome(false)
	if err != nil {
		t.Fatal(err)
	}
	const deafOnce = `trap 'trap - USR1' USR1; echo up; while :; do sleep 1; done`
	g, err := watch(h, "USR1", "sh", "-c", deafOnce)
	if err != nil {
		t.Fatal(err)
	}
	for range time.Tick(10 * time.Millisecond) {
		if log, err := os.ReadFile(h.logFile()); err != nil {
			t.Fatal(err)
		} else if strings.Contains(string(log), "up") {
			break
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- g.close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
		t.Fatal("the command runs on: the guard sent its signal once")
	}
	if _, err := os.Stat(h.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home is left: %v", err)
	}
}

const deathInInitdb = "is killed in initdb"

// dieInInitdb begins like Start and waits to be killed.
func dieInInitdb(t *testing.T) {
	binDir, err := machinePlaces().binaries(t.Context(), os.Stderr, anyVersion)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHome(false)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{home: h, binDir: binDir}
	if err := s.startInitdb(""); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s none\n", h.dir)
	hang(s)
}

func TestNothingIsLeftWhenTheParentIsKilledInInitdb(t *testing.T) {
	t.Parallel()
	child := startChild(t, deathInInitdb)
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.awaitNothingLeft(0)
}

// child is this test binary run again, with a server of its own.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	home string
	dsn  string
	out  *bufio.Reader
}

// startChild returns when the child's server is up.
func startChild(t *testing.T, death string, flags ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-test.run=^TestDie$"}, flags...)...)
	cmd.Env = append(os.Environ(), deathVariable+"="+death)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, out: bufio.NewReader(stdout)}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the child said nothing of its server: %v: %s", err, line)
	}
	if n, err := fmt.Sscan(line, &c.home, &c.dsn); n != 2 {
		t.Fatalf("the child said %q, want a directory and a connection string (%v)\n%s", line, err, c.output())
	}
	return c
}

// output returns the rest of the child's output, after the child has ended. So it also shows that no process of the
// server holds the child's output open; go test would wait for that.
func (c *child) output() string {
	rest, err := io.ReadAll(c.out)
	if err != nil {
		return fmt.Sprintf("%s (%v)", rest, err)
	}
	return string(rest)
}

// postmaster returns the server's process id, or 0 if it is gone already.
func (c *child) postmaster() int {
	text, err := os.ReadFile(filepath.Join(c.home, "data", "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, convErr := strconv.Atoi(first)
	if err := errors.Join(err, convErr); err != nil {
		c.t.Fatalf("read the server's process id: %v", err)
	}
	return pid
}

// awaitNothingLeft waits until the child, its server and its directory are gone.
func (c *child) awaitNothingLeft(postmaster int) {
	c.t.Helper()
	said := c.output()
	ended := c.cmd.Wait()
	// The end of a process that is not our child cannot be awaited: the test polls.
	deadline := time.After(Patience(20 * time.Second))
	for range time.Tick(10 * time.Millisecond) {
		_, err := os.Stat(c.home)
		gone := errors.Is(err, fs.ErrNotExist)
		if gone && (postmaster == 0 || errors.Is(syscall.Kill(postmaster, 0), syscall.ESRCH)) {
			return
		}
		select {
		case <-deadline:
			c.t.Fatalf("after the child ended (%v): directory gone %v, postmaster %d: %v\nthe child said:\n%s",
				ended, gone, postmaster, syscall.Kill(postmaster, 0), said)
		default:
		}
	}
}
