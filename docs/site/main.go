package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// settings are the flags.
type settings struct {
	root, out, version, serve string

	label string // of the served site: it stays when a file has changed
}

func run(ctx context.Context, args []string) error {
	var set settings
	flags := flag.NewFlagSet("site", flag.ContinueOnError)
	flags.StringVar(&set.root, "root", "../..", "the repository")
	flags.StringVar(&set.out, "out", ".public", "the `folder` that the site is written to, beside versions it has")
	flags.StringVar(&set.version, "version", "", "a tag or a commit to build; empty: the files as they are")
	flags.StringVar(&set.serve, "serve", "", "an `address` to serve the site at, once it is built")
	if err := flags.Parse(args); err != nil {
		return err
	}
	built, err := set.build(ctx)
	if err != nil {
		return err
	}
	set.label = built.version
	page := filepath.Join(set.out, filepath.FromSlash(built.version), "index.html")
	_, _ = fmt.Fprintf(os.Stdout, "%d pages: %s\n", len(built.all()), page)
	if set.serve != "" {
		return set.listen(ctx)
	}
	return nil
}

// build makes one version.
func (set settings) build(ctx context.Context) (*site, error) {
	from, done := workTree(ctx, set.root), func() {}
	if set.label != "" {
		from.version = set.label
	}
	if set.version != "" {
		var err error
		if from, done, err = committed(ctx, set.root, set.version); err != nil {
			return nil, err
		}
	}
	defer done()
	built, err := read(from)
	if err != nil {
		return nil, err
	}
	return built, built.write(set.out)
}
