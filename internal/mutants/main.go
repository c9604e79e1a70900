package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/pgdev"
)

// settings are the flags.
type settings struct {
	run     string
	list    bool
	verbose bool
	out     io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := settings{out: os.Stdout}
	flag.StringVar(&s.run, "run", "", "try only the mutants whose names match this regular expression")
	flag.BoolVar(&s.list, "list", false, "print the mutants and what they guard, and try none")
	flag.BoolVar(&s.verbose, "v", false, "print what the tests said of every mutant, not only of those that lived")
	flag.Parse()
	if err := mutants(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func mutants(ctx context.Context, s settings) error {
	chosen, err := choose(s.run)
	if err != nil {
		return err
	}
	if s.list {
		for _, m := range chosen {
			_, _ = fmt.Fprintf(s.out, "%s (%s)\n    %s\n    %s %s\n", m.name, m.theme, m.guards, m.target.pkg, strings.Join(m.target.tests, " "))
		}
		return nil
	}
	l, clean, err := openLaboratory(ctx)
	if err != nil {
		return err
	}
	return errors.Join(l.tryAll(ctx, s, chosen), clean())
}

func choose(pattern string) ([]mutant, error) {
	all, err := catalog()
	if err != nil {
		return nil, err
	}
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !wanted.MatchString(m.name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant is named like %q", pattern)
	}
	return chosen, nil
}

// openLaboratory starts one Postgres for all trials: starting one takes longer than most tests.
func openLaboratory(ctx context.Context) (l laboratory, clean func() error, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return l, nil, fmt.Errorf("find the module: %w", err)
	}
	dir, err := os.MkdirTemp("", "edda-mutants-")
	if err != nil {
		return l, nil, err
	}
	server, err := pgdev.Start(ctx, pgdev.Options{})
	if err != nil {
		return l, nil, errors.Join(err, os.RemoveAll(dir))
	}
	clean = func() error { return errors.Join(server.Stop(), os.RemoveAll(dir)) }
	return laboratory{root: strings.TrimSpace(string(root)), dir: dir, dsn: server.DSN()}, clean, nil
}

func (l laboratory) tryAll(ctx context.Context, s settings, chosen []mutant) error {
	for _, m := range chosen {
		if _, err := m.files(l.root); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := l.control(ctx, chosen); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.out, "%-9s %-40s %6.1fs\n", "passed", "the engine as it is", time.Since(begin).Seconds())
	dead := 0
	for _, m := range chosen {
		begin := time.Now()
		v, output, err := l.try(ctx, m)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(s.out, "%-9s %-40s %6.1fs\n", v, m.name, time.Since(begin).Seconds())
		if v == killed {
			dead++
		} else {
			_, _ = fmt.Fprintf(s.out, "    %s\n    want a failure of %v in %s\n", m.guards, m.target.tests, m.target.pkg)
		}
		if s.verbose || v != killed && v != survived {
			_, _ = fmt.Fprintln(s.out, tail(output))
		}
	}
	_, _ = fmt.Fprintf(s.out, "mutants=%d killed=%d\n", len(chosen), dead)
	if dead < len(chosen) {
		return fmt.Errorf("%d lived: no test holds their guards in place", len(chosen)-dead)
	}
	return nil
}
