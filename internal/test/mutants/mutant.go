package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is the engine without one guard.
type mutant struct {
	name   string
	theme  string   // the file of the catalog
	guards string   // the promise that the guard keeps
	rows   []string // of docs/internals/conformance.md, which its tests show
	target target
	hunks  []hunk
}

// target names the tests of one package that must fail.
type target struct {
	pkg   string   // in the form of the go command: ./bus
	tags  string   // build tags that its tests need, or ""
	tests []string // names, subtests after a slash
}

// pattern returns a pattern for the -run flag that matches exactly these tests.
func (t target) pattern() string {
	var all []string
	for _, name := range t.tests {
		parts := strings.Split(name, "/")
		for n, part := range parts {
			parts[n] = "^" + regexp.QuoteMeta(part) + "$"
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// hunk is a change of whole lines of one file.
type hunk struct {
	file     string // from the root of the module, with slashes
	old, now string
}

// applied returns the text with the change in it.
func (h hunk) applied(text string) (string, error) {
	text = "\n" + text // every line now begins after a line's end
	first, last := strings.Index(text, "\n"+h.old), strings.LastIndex(text, "\n"+h.old)
	switch {
	case first < 0:
		return "", fmt.Errorf("its old lines are not in %s", h.file)
	case first != last:
		return "", fmt.Errorf("its old lines are in %s more than once", h.file)
	}
	return text[1:first+1] + h.now + text[first+1+len(h.old):], nil
}

// files returns the changed files by path. Nothing is written.
func (m mutant) files(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, h := range m.hunks {
		text, ok := changed[h.file]
		if !ok {
			original, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(h.file)))
			if err != nil {
				return nil, fmt.Errorf("mutant %s no longer applies: %w", m.name, err)
			}
			text = string(original)
		}
		text, err := h.applied(text)
		if err != nil {
			return nil, fmt.Errorf("mutant %s no longer applies: %w", m.name, err)
		}
		changed[h.file] = text
	}
	return changed, nil
}

// overlay writes files into dir, with the list that makes the go command read them in place of the real ones. It
// returns the path of that list.
func overlay(root, dir string, files map[string]string) (string, error) {
	replace := map[string]string{}
	for path, text := range files {
		path = filepath.FromSlash(path)
		place := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, path)] = place
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
