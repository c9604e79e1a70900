package procs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
)

// IsWorker reports whether this process was started as a worker.
func IsWorker(variable string) bool { return os.Getenv(variable) != "" }

// Become turns the process into a worker until it ends, if it was started as one: it runs serve and ends the process.
// name is the prefix of an error.
func Become(variable, name string, serve func() error) {
	if !IsWorker(variable) {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Attend reads the task that this worker was started with, and returns the context of its work. The context ends when
// the parent requests the end of the worker, and when the parent has ended. The worker ignores Ctrl-C, which is for
// the parent.
func Attend(ctx context.Context, variable string, task any) (context.Context, error) {
	return Listen(ctx, variable, task, func(string) {})
}

// Listen is Attend for a worker that receives messages later: each is called with every line of Process.WriteLine,
// one at a time.
func Listen(ctx context.Context, variable string, task any, each func(line string)) (context.Context, error) {
	signal.Ignore(os.Interrupt)
	if err := json.Unmarshal([]byte(os.Getenv(variable)), task); err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			each(lines.Text())
		}
	}()
	return ctx, nil
}
