package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const weaveTime = time.Hour // time limit for the compilation of everything

// compile weaves mutants into the engine and compiles the tests that they name, once for all of them. The other
// mutants are compiled alone in their trials.
func (l *laboratory) compile(ctx context.Context, mutants []mutant) error {
	l.programs, l.woven = map[string]string{}, map[string]bool{}
	byTags := map[string][]mutant{}
	for _, m := range mutants {
		byTags[m.target.tags] = append(byTags[m.target.tags], m)
	}
	for _, tags := range slices.Sorted(maps.Keys(byTags)) {
		dir, err := os.MkdirTemp(l.dir, "woven-")
		if err != nil {
			return err
		}
		if err := l.compileWith(ctx, dir, byTags[tags], targets(byTags[tags])); err != nil {
			return err
		}
	}
	return nil
}

// compileWith compiles tests that have the same build tags. A fault in the body of a mutant keeps only this mutant out.
func (l *laboratory) compileWith(ctx context.Context, dir string, mutants []mutant, tests []target) error {
	tags := tests[0].tags
	for {
		w, err := weave(l.root, mutants)
		if err != nil {
			return err
		}
		list, err := overlay(l.root, dir, w.overlay())
		if err != nil {
			return err
		}
		args := []string{"go", "list", "-export", "-tags", tags, "-overlay", list, "--"}
		for _, pkg := range slices.Sorted(maps.Keys(w.added)) {
			args = append(args, "./"+pkg)
		}
		output, failure := l.command(ctx, l.root, weaveTime, args)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		left := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return faulty(output, m.name) })
		if failure != nil && len(left) == len(mutants) {
			return fmt.Errorf("compile the engine with all mutants in it: %w\n%s", failure, tail(output))
		}
		if mutants = left; failure != nil {
			continue
		}
		if err := l.link(ctx, dir, tests, "-overlay", list); err != nil {
			return err
		}
		for name := range w.mutants {
			l.woven[name] = true
		}
		return nil
	}
}

// faulty reports whether the compiler found a fault in the body of a mutant.
func faulty(output, name string) bool { return strings.Contains(output, lineRoot[1:]+name+"/") }

// link keeps the programs that the go command builds of the tests, instead of running them. A package whose tests do
// not compile has no program: its mutants are compiled alone.
func (l *laboratory) link(ctx context.Context, dir string, targets []target, flags ...string) error {
	keep := filepath.Join(dir, "keep")
	script := "#!/bin/sh\nmv \"$1\" \"$EDDA_KEEP/$(pwd -P | tr / +)\"\n"
	if err := os.WriteFile(keep, []byte(script), 0o700); err != nil {
		return err
	}
	args := slices.Concat([]string{"go", "test", "-count=1", "-vet=off", "-ldflags=-w", "-tags", targets[0].tags,
		"-exec", keep}, flags)
	for _, t := range targets {
		args = append(args, t.pkg)
	}
	output, failure := l.command(ctx, l.root, weaveTime, args, "EDDA_KEEP="+dir)
	if failure != nil {
		_, _ = fmt.Fprintf(l.out, "compile the tests with all mutants: %v\n%s", failure, tail(output))
	}
	root, err := filepath.EvalSymlinks(l.root)
	for _, t := range targets {
		program := filepath.Join(dir, strings.ReplaceAll(filepath.Join(root, t.pkg), "/", "+"))
		if _, err := os.Stat(program); err == nil {
			l.programs[t.place()] = program
		}
	}
	return errors.Join(ctx.Err(), err)
}
