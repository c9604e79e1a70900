package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Program is an example program.
type Program struct {
	Name  string
	Usage string                          // the text that -h prints before the flags
	Flags func(f *flag.FlagSet)           // declares the flags
	Check func() error                    // returns an error for wrong values; nil checks nothing
	Run   func(ctx context.Context) error // is called when the flags are right
}

// Start runs the program, and returns the exit code.
func (p Program) Start(args []string, out, complaints io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	switch err := p.read(args, out); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(complaints, "%s: %v\nRun with -h for help.\n", p.Name, err)
		return 2
	}
	if err := p.Run(ctx); err != nil {
		_, _ = fmt.Fprintf(complaints, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

func (p Program) read(args []string, help io.Writer) error {
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed once, by Start
	p.Flags(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(help, p.Usage)
			f.SetOutput(help)
			f.PrintDefaults()
		}
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("there is no argument %q, only flags", f.Arg(0))
	}
	if p.Check == nil {
		return nil
	}
	return p.Check()
}
