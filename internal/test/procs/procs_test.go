package procs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/procs"
	"go.uber.org/goleak"
)

// taskVariable makes this test binary a worker.
const taskVariable = "EDDA_PROCS_TEST"

// task describes the behaviour of the worker.
type task struct {
	Manner string
	Words  string // first output of the worker, on standard error
}

func TestMain(m *testing.M) {
	if procs.IsWorker(taskVariable) {
		live(context.Background())
	}
	goleak.VerifyTestMain(m)
}

// live is the worker. It never returns.
func live(ctx context.Context) {
	var t task
	ctx, err := procs.Listen(ctx, taskVariable, &t, func(line string) { fmt.Println("heard", line) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(5)
	}
	fmt.Fprintln(os.Stderr, t.Words)
	fmt.Println("ready")
	switch t.Manner {
	case "leaves":
		os.Exit(0)
	case "fails":
		os.Exit(3)
	case "deaf":
		select {}
	case "fails when asked":
		<-ctx.Done()
		os.Exit(4)
	case "is a parent":
		if _, err := procs.Start(procs.Job{Name: "child", Variable: taskVariable, Task: task{},
			Stdout: os.Stdout}); err != nil {
			os.Exit(6)
		}
	}
	<-ctx.Done()
	os.Exit(0)
}

// start starts a worker and returns when it is ready. The reader returns its later output.
func start(t *testing.T, what task) (*procs.Process, *bufio.Reader) {
	t.Helper()
	ours, its, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := procs.Start(procs.Job{Name: "anna", Variable: taskVariable, Task: what, Stdout: its})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		_ = ours.Close()
	})
	_ = its.Close()
	says := bufio.NewReader(ours)
	if line, err := says.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the worker said %q, want that it is ready: %v", line, err)
	}
	return p, says
}

func TestAKilledWorkerHasEndedAndIsNoError(t *testing.T) {
	t.Parallel()
	p, _ := start(t, task{Manner: "deaf"})
	p.Kill()
	select {
	case <-p.Ended():
	default:
		t.Error("Kill returned while the worker lived")
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("that we killed it is told as an error: %v", err)
	}
}

func TestAWorkerThatEndsByItselfIsAnErrorWithItsLastWords(t *testing.T) {
	t.Parallel()
	for _, manner := range []string{"leaves", "fails"} {
		p, _ := start(t, task{Manner: manner, Words: "the disk is full"})
		<-p.Ended()
		p.Kill() // too late to be the cause of its end
		err := p.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "worker anna ended by itself") ||
			!strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("a worker that %s: %v", manner, err)
		}
	}
}

func TestAWorkerEndsWhenItIsAskedTo(t *testing.T) {
	t.Parallel()
	over, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct{ manner, waited, dismissed string }{
		{"", "", ""},
		{"fails when asked", "exit status 4", "exit status 4"},
	} {
		p, _ := start(t, task{Manner: c.manner})
		expect(t, "Wait", p.Wait(over), c.waited)
		p, _ = start(t, task{Manner: c.manner})
		expect(t, "Stop", p.Stop(time.Minute), c.dismissed)
	}
	p, _ := start(t, task{Manner: "leaves"})
	<-p.Ended()
	expect(t, "Stop of one that had left", p.Stop(time.Minute), "")
}

func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s returned %v, want %q", what, err, want)
	}
}

func TestAFrozenWorkerDoesNothing(t *testing.T) {
	t.Parallel()
	frozen, _ := start(t, task{})
	frozen.Freeze()
	expect(t, "Stop of a frozen worker", frozen.Stop(200*time.Millisecond), "did not end within 200ms")
	thawed, _ := start(t, task{})
	thawed.Freeze()
	thawed.Thaw()
	expect(t, "Stop of a thawed worker", thawed.Stop(time.Minute), "")
}

func TestAWorkerHearsWhatItIsTold(t *testing.T) {
	t.Parallel()
	p, says := start(t, task{})
	for _, line := range []string{"calm", "go on"} {
		if err := p.WriteLine(line); err != nil {
			t.Fatal(err)
		}
		if heard, err := says.ReadString('\n'); err != nil || heard != "heard "+line+"\n" {
			t.Errorf("told %q, the worker said %q: %v", line, heard, err)
		}
	}
	p.Kill()
	if p.WriteLine("anybody there?") == nil {
		t.Error("a dead worker was told something")
	}
}

func TestAWorkerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	parent, says := start(t, task{Manner: "is a parent"})
	if line, err := says.ReadString('\n'); err != nil || line != "ready\n" { // the child
		t.Fatalf("the child said %q: %v", line, err)
	}
	parent.Kill()
	if _, err := says.ReadByte(); !errors.Is(err, io.EOF) { // the last writer has ended
		t.Errorf("the child lives on: %v", err)
	}
}

func TestACrewReplacesWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	started := make(chan *procs.Process)
	hire := func(place, life int) procs.Job {
		return procs.Job{Name: fmt.Sprintf("place %d life %d", place, life), Variable: taskVariable, Task: task{}}
	}
	c := procs.NewWorkers(2, hire, procs.Options{Started: func(p *procs.Process) { started <- p }})
	all := run.NewGroup(t.Context())
	all.Go(c.Run)
	<-started
	<-started
	before := names(c)
	c.Living()[0].Kill()
	if p := <-started; p.Name != "place 0 life 2" {
		t.Errorf("%s came in place of the first", p.Name)
	}
	want := [][]string{{"place 0 life 1", "place 1 life 1"}, {"place 0 life 2", "place 1 life 1"}}
	if got := [][]string{before, names(c)}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("there were %v, want %v", got, want)
	}
	all.Stop()
	if err := all.Wait(); err != nil {
		t.Errorf("the crew ended with %v", err)
	}
	if left := c.Any(rand.New(rand.NewPCG(1, 1))); left != nil {
		t.Errorf("%s is left", left.Name)
	}
}

func names(c *procs.Workers) (all []string) {
	for _, p := range c.Living() {
		all = append(all, p.Name)
	}
	return all
}

func TestACrewEndsWithTheWorkerThatEndsByItself(t *testing.T) {
	t.Parallel()
	manners := []string{"", "fails"}
	c := procs.NewWorkers(2, func(place, _ int) procs.Job {
		return procs.Job{Name: fmt.Sprint("at ", place), Variable: taskVariable, Task: task{Manner: manners[place]}}
	}, procs.Options{})
	expect(t, "Run", c.Run(t.Context()), "worker at 1 ended by itself: exit status 3")
}
