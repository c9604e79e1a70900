package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // whoever interrupts twice does not wait for the first
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// streams are where a command reads, and where it writes: its results, and what it says about them.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	t := &tool{streams: s}
	defer t.close()
	root := t.root() //nolint:contextcheck // commands get the context from ExecuteContext
	root.SetArgs(args)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	return t.complain(ctx, err)
}
