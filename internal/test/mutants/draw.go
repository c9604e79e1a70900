package main

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// drawn is a random mutant.
type drawn struct {
	mutant
	edit edit
}

// edits returns the edits of a package by line, and the texts of its files.
func (c *product) edits(p *goPackage) (lines [][]edit, texts map[string]string, err error) {
	var all []edit
	texts = map[string]string{}
	for _, s := range p.sources {
		texts[s.name] = s.text
		all = append(all, goEdits(p, s)...)
	}
	for _, name := range p.embedded {
		text, err := os.ReadFile(filepath.Join(c.root, name))
		if err != nil {
			return nil, nil, err
		}
		texts[name] = string(text)
		for _, s := range statements(name, string(text)) {
			all = append(all, sqlEdits(p, s)...)
		}
	}
	known := map[string]int{}
	for _, e := range all {
		place := fmt.Sprint(e.file, " ", strings.Count(texts[e.file][:e.from], "\n"))
		if _, is := known[place]; !is {
			known[place] = len(lines)
			lines = append(lines, nil)
		}
		lines[known[place]] = append(lines[known[place]], e)
	}
	return lines, texts, nil
}

// draw draws n mutants from the packages whose directories match in. Each line of code that can be broken is as likely
// as any other, and each package gets its share to within one mutant. A seed always draws the same mutants from the
// same code.
func (c *product) draw(n int, seed string, in *regexp.Regexp) ([]drawn, error) {
	random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed))))
	var lines [][]edit
	texts := map[string]string{}
	for _, p := range c.packages {
		if !in.MatchString(p.dir) {
			continue
		}
		own, its, err := c.edits(p)
		if err != nil {
			return nil, err
		}
		random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		lines = append(lines, own...)
		for name, text := range its {
			texts[name] = text
		}
	}
	if n > len(lines) {
		return nil, fmt.Errorf("only %d lines can be broken, and not %d", len(lines), n)
	}
	step := float64(len(lines)) / float64(n)
	begin := random.Float64() * step
	var all []drawn
	used, names := map[int]bool{}, map[string]int{}
	for k := range n {
		for at := int(begin + float64(k)*step); at < len(lines); at++ {
			if used[at] {
				continue
			}
			used[at] = true
			if d, ok := c.one(lines[at], texts, random); ok {
				if names[d.name]++; names[d.name] > 1 {
					d.name = fmt.Sprintf("%s-%d", d.name, names[d.name])
				}
				all = append(all, d)
				break
			}
		}
	}
	return all, nil
}

// one makes a mutant of an edit of a line that compiles. It reports false if no edit compiles.
func (c *product) one(edits []edit, texts map[string]string, random *rand.Rand) (drawn, bool) {
	for _, n := range random.Perm(len(edits)) {
		e := edits[n]
		text := texts[e.file]
		if c.compiles(e.p, e.file, text[:e.from]+e.now+text[e.to:]) {
			return drawn{e.mutant(text), e}, true
		}
	}
	return drawn{}, false
}

// mutant makes a mutant of an edit. It adds lines before the edit until the old lines occur once in the file. The name
// depends only on the lines that change, and on the names of the package and the function.
func (e edit) mutant(text string) mutant {
	from := strings.LastIndexByte(text[:e.from], '\n') + 1
	to := len(text)
	if end := strings.IndexByte(text[e.to:], '\n'); end >= 0 {
		to = e.to + end + 1
	}
	now := text[from:e.from] + e.now + text[e.to:to]
	sum := sha256.Sum256([]byte(path.Base(e.p.dir) + "\n" + e.function + "\n" + text[from:to] + "\n" + now))
	for from > 0 && strings.Count("\n"+text, "\n"+text[from:to]) > 1 {
		before := strings.LastIndexByte(text[:from-1], '\n') + 1
		now = text[before:from] + now
		from = before
	}
	return mutant{name: fmt.Sprintf("%s-%.5x", e.op, sum), theme: e.p.dir, guards: e.String(),
		target: target{pkg: "./" + e.p.dir}, hunks: []hunk{{file: e.file, old: text[from:to], now: now}}}
}

//go:embed arguments.txt
var argumentsText string

// arguments reads why some mutants change nothing that a test could see, by their names.
func arguments(text string) (map[string]string, error) {
	all := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		head, why, ok := strings.Cut(line, ": ")
		name, where, is := strings.Cut(head, " ")
		if !ok || !is || where == "" {
			return nil, fmt.Errorf("arguments.txt: %q: want the name of a mutant, its place, and an argument", line)
		}
		all[name] = why
	}
	return all, nil
}

// difference returns the lines of a change.
func (m mutant) difference() string {
	var b strings.Builder
	for _, h := range m.hunks {
		old, now := slices.Collect(strings.Lines(h.old)), slices.Collect(strings.Lines(h.now))
		for len(old) > 1 && len(now) > 1 && old[0] == now[0] {
			old, now = old[1:], now[1:]
		}
		b.WriteString("    -" + strings.Join(old, "    -") + "    +" + strings.Join(now, "    +"))
	}
	return b.String()
}
