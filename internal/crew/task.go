package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
)

// Hired tells whether this process was started as a worker.
func Hired(variable string) bool { return os.Getenv(variable) != "" }

// Attend reads the task that this worker was started with, and returns the context of its work. That ends when the
// parent asks the worker to end, or when the parent itself has ended. Ctrl-C is for the parent to act on.
func Attend(ctx context.Context, variable string, task any) (context.Context, error) {
	return Listen(ctx, variable, task, func(string) {})
}

// Listen is Attend for a worker that is told more later: hear is given each line of Process.Tell, one after another.
func Listen(ctx context.Context, variable string, task any, hear func(line string)) (context.Context, error) {
	signal.Ignore(os.Interrupt)
	if err := json.Unmarshal([]byte(os.Getenv(variable)), task); err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			hear(lines.Text())
		}
	}()
	return ctx, nil
}
