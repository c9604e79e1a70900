package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// record is a file with a line for each trial: its key, the mutant, and the result. An interrupted run continues from
// it, and so does the next run after a change, with the trials that the change affects. It is in the repository, so
// that runs on other machines can continue, too. The zero record keeps nothing.
type record struct {
	file   *os.File
	whole  bool // all mutants are chosen
	commit string
	keys   map[string]string // keys of the trials, by mutant
	ended  map[string]string // results of the mutants with these keys, by mutant
}

// short returns the begin of the commit, or "-" if there is no record.
func (r *record) short() string {
	if r.commit == "" {
		return "-"
	}
	return r.commit[:12]
}

// killed reports whether the record has a mutant as killed in a trial that would be the same now.
func (r *record) killed(name string) bool { return strings.HasPrefix(r.ended[name], string(killed)) }

// openRecord reads the record in path and opens it to add lines. It returns an error if the work tree has changes,
// because a result belongs to a commit. Changes of the page and the record do not count: the run writes them.
func openRecord(ctx context.Context, root, path, page string, keys func() (map[string]string, error)) (*record, error) {
	if path == "" {
		return &record{ended: map[string]string{}}, nil
	}
	git := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = root
		output, err := command.Output()
		return strings.TrimSpace(string(output)), err
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("-record: find the commit: %w", err)
	}
	status := []string{"status", "--porcelain", "--untracked-files=no", "--", "."}
	for _, ours := range []string{page, path} {
		if ours != "" && filepath.IsLocal(ours) {
			status = append(status, ":(exclude)"+ours)
		}
	}
	switch changes, err := git(status...); {
	case err != nil:
		return nil, fmt.Errorf("-record: look for changes: %w", err)
	case changes != "":
		return nil, fmt.Errorf("-record wants a commit, and the work tree has changes:\n%s", changes)
	}
	r := &record{commit: commit, whole: page != ""}
	if r.keys, err = keys(); err != nil {
		return nil, fmt.Errorf("-record: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("-record: %w", err)
	}
	r.file = file
	if r.ended, err = endedAs(r.keys, file); err != nil {
		return nil, errors.Join(fmt.Errorf("-record: %w", err), file.Close())
	}
	return r, nil
}

func keysOf(ctx context.Context, root, page string, chosen []mutant) (map[string]string, error) {
	g, err := readGround(ctx, root, page)
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, m := range chosen {
		if keys[m.name], err = g.key(m); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// endedAs reads the results of mutants, the last trial of each with its key.
func endedAs(keys map[string]string, in io.Reader) (map[string]string, error) {
	ended := map[string]string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		key, rest, _ := strings.Cut(lines.Text(), " ")
		name, how, _ := strings.Cut(rest, " ")
		if name != "" && key == keys[name] {
			ended[name] = how
		}
	}
	return ended, lines.Err()
}

func (r *record) add(name, how string) error {
	r.ended[name] = how
	if r.file == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.file, r.keys[name], name, how)
	return err
}

// close closes the file. If all mutants were chosen, it keeps only the lines that a next run could continue from, in
// the order of the mutants' names.
func (r *record) close() error {
	if r.file == nil {
		return nil
	}
	var err error
	if r.whole {
		err = r.rewrite()
	}
	return errors.Join(err, r.file.Close())
}

func (r *record) rewrite() error {
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.ended)) {
		if !r.killed(name) {
			continue
		}
		if _, err := fmt.Fprintln(r.file, r.keys[name], name, r.ended[name]); err != nil {
			return err
		}
	}
	return nil
}
