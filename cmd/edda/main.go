package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/migrations"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: isTerminal(os.Stdin)}))
}

// streams are the input of a command, its output, and the output of its messages.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // in is a terminal
}

func isTerminal(f *os.File) bool {
	s, err := f.Stat()
	return err == nil && s.Mode()&os.ModeCharDevice != 0
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

// stamped is the version of a release, set by the linker. After "go install …@VERSION" the build info has it.
var stamped string

const noVersion = "(devel)"

// ownVersion returns the version of this program, noVersion if it is unknown.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && stamped == "" && info.Main.Version != "" {
		return info.Main.Version
	}
	return cmp.Or(stamped, noVersion)
}

func (t *tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program, and its schema version",
		Example: `  edda version
  edda version --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			version := ownVersion()
			return t.print(lineOf(view.Object{"version", version, "schema_version", migrations.Version, "go",
				runtime.Version()},
				"edda %s, schema version %d, %s", version, migrations.Version, runtime.Version()))
		},
	}
}
