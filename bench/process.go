package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childVariable holds the Case of a worker process; with it set, this program is one.
const childVariable = "EDDA_BENCH_CHILD"

// work runs the peer in c.Processes processes and calls started when all of them are ready. A single
// process is this one. It returns the latencies of the latency workload.
func work(ctx context.Context, dsn string, c Case, started func()) ([]time.Duration, error) {
	if c.Processes > 1 {
		return nil, workInChildren(ctx, dsn, c, started)
	}
	w := &Worker{Case: c, DSN: dsn, Start: func(context.Context) error { started(); return nil }}
	if c.Workload == Latency {
		w.watch = newStopwatch(c.N)
	}
	if err := peers[c.Peer].peer.Work(ctx, w); err != nil || w.watch == nil {
		return nil, err
	}
	return w.watch.measured()
}

// child is a worker process and the two pipes that keep it in step with the others.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func workInChildren(ctx context.Context, dsn string, c Case, started func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills whatever has not ended
	children := make([]*child, c.Processes)
	for i := range children {
		var err error
		if children[i], err = startChild(ctx, dsn, c); err != nil {
			return err
		}
	}
	if err := awaitAll(children, "ready"); err != nil {
		return err
	}
	started()
	for _, ch := range children {
		if _, err := io.WriteString(ch.in, "go\n"); err != nil {
			return err
		}
	}
	if err := awaitAll(children, "done"); err != nil {
		return err
	}
	for _, ch := range children {
		if err := ch.cmd.Wait(); err != nil {
			return fmt.Errorf("worker process: %w", err)
		}
	}
	return nil
}

func startChild(ctx context.Context, dsn string, c Case) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(job), "DATABASE_URL="+dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

// awaitAll waits until each child has printed the word.
func awaitAll(children []*child, word string) error {
	for _, ch := range children {
		line, err := ch.out.ReadString('\n')
		if err != nil || line != word+"\n" {
			return fmt.Errorf("a worker process ended before it was %s (output %q): %v", word, line, err)
		}
	}
	return nil
}

// runChild is main for a worker process.
func runChild(ctx context.Context, job string) error {
	w := &Worker{DSN: os.Getenv("DATABASE_URL")}
	if err := json.Unmarshal([]byte(job), &w.Case); err != nil {
		return fmt.Errorf("read %s: %w", childVariable, err)
	}
	w.Start = func(context.Context) error {
		fmt.Println("ready")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	if err := peers[w.Peer].peer.Work(ctx, w); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}
