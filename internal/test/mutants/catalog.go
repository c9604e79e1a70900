package main

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"
)

//go:embed catalog/*.txt
var catalogFiles embed.FS

// catalog reads every mutant, in the order of the files. All faults are reported at once.
func catalog() ([]mutant, error) {
	entries, err := catalogFiles.ReadDir("catalog")
	if err != nil {
		return nil, err
	}
	var all []mutant
	var faults []error
	taken := map[string]bool{}
	for _, entry := range entries {
		text, err := catalogFiles.ReadFile("catalog/" + entry.Name())
		if err != nil {
			return nil, err
		}
		mutants, err := parse(strings.TrimSuffix(path.Base(entry.Name()), ".txt"), string(text))
		faults = append(faults, err)
		for _, m := range mutants {
			if taken[m.name] {
				faults = append(faults, fmt.Errorf("there are two mutants %s", m.name))
			}
			taken[m.name] = true
		}
		all = append(all, mutants...)
	}
	return all, errors.Join(faults...)
}

// reader reads the paragraphs of one file.
type reader struct {
	theme   string
	line    int
	mutants []mutant
	faults  []error
}

func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s.txt:%d: "+format, append([]any{r.theme, r.line}, args...)...))
}

func parse(theme, text string) ([]mutant, error) {
	r := &reader{theme: theme}
	for line := range strings.Lines(text) {
		r.line++
		r.read(line)
	}
	r.finished()
	return r.mutants, errors.Join(r.faults...)
}

// read takes one line, with its end.
func (r *reader) read(line string) {
	switch {
	case strings.TrimSpace(line) == "" || line[0] == '#':
		return
	case strings.ContainsRune("-+ ", rune(line[0])):
		r.change(line[0], line[1:])
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	if word == "mutant" {
		r.finished()
		r.mutants = append(r.mutants, mutant{name: rest, theme: r.theme})
		return
	}
	if len(r.mutants) == 0 {
		r.fault("%q stands before the first mutant", word)
		return
	}
	m := &r.mutants[len(r.mutants)-1]
	switch word {
	case "guards":
		m.guards = rest
	case "rows":
		m.rows = append(m.rows, strings.Fields(rest)...)
	case "test":
		if m.target.pkg != "" {
			r.fault("mutant %s has two lines of tests", m.name)
		}
		if names := strings.Fields(rest); len(names) > 1 {
			m.target.pkg, m.target.tests = names[0], names[1:]
		}
	case "tags":
		m.target.tags = rest
	case "file":
		m.hunks = append(m.hunks, hunk{file: rest})
	default:
		r.fault("%q: want mutant, guards, rows, test, tags, file, or a line of a change", word)
	}
}

// change handles a line of a hunk.
func (r *reader) change(sign byte, line string) {
	if len(r.mutants) == 0 || len(r.mutants[len(r.mutants)-1].hunks) == 0 {
		r.fault("a change of no file")
		return
	}
	hunks := r.mutants[len(r.mutants)-1].hunks
	h := &hunks[len(hunks)-1]
	if sign != '+' {
		h.old += line
	}
	if sign != '-' {
		h.now += line
	}
}

// finished checks the last mutant.
func (r *reader) finished() {
	if len(r.mutants) == 0 {
		return
	}
	m := r.mutants[len(r.mutants)-1]
	switch {
	case m.name == "" || m.guards == "":
		r.fault("mutant %q: want a name, and a line of guards", m.name)
	case len(m.target.tests) == 0:
		r.fault("mutant %s: want a package and the names of its tests", m.name)
	case len(m.hunks) == 0:
		r.fault("mutant %s changes nothing", m.name)
	}
	for _, h := range m.hunks {
		if h.old == "" || h.old == h.now {
			r.fault("mutant %s: its change of %s replaces nothing", m.name, h.file)
		}
	}
}
