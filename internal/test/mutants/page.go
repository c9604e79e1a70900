package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// unfinished is the result of a mutant whose process died before its tests ended.
const unfinished = string(killed) + " before its test ended"

// score counts the mutants of a theme by their result.
type score struct{ all, named, unfinished int }

func (s *score) add(how string) {
	s.all++
	switch how {
	case string(killed):
		s.named++
	case unfinished:
		s.unfinished++
	}
}

func (s *score) row(theme string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d |\n", theme, s.all, s.named, s.unfinished, s.all-s.named-s.unfinished)
}

// writePage writes the page, and keeps the part about random mutants.
func (r *record) writePage(path string, mutants []mutant) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(r.page(mutants)+randomPart(string(old))), 0o644)
}

// page returns the results on the commit of the record, theme by theme.
func (r *record) page(mutants []mutant) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, `# Mutants

`+"`make mutants`"+` wrote this page. A mutant is one break of the engine on purpose, in
`+"`internal/test/mutants/catalog`"+`; it is killed when all tests that it names fail.

Commit %s, %s. A result of an earlier run is kept as
long as neither the code nor the tests of the mutant change.

| theme | mutants | killed by the tests they name | ended the tests' process | lived |
|---|---|---|---|---|
`, r.commit, time.Now().UTC().Format(time.DateOnly))
	sum, theme, s := score{}, "", score{}
	for _, m := range mutants {
		if m.theme != theme && s.all > 0 {
			b.WriteString(s.row(theme))
			s = score{}
		}
		theme = m.theme
		s.add(r.ended[m.name])
		sum.add(r.ended[m.name])
	}
	b.WriteString(s.row(theme))
	b.WriteString(sum.row("all"))
	return b.String()
}
