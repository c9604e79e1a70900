package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// reached is the part of the product that each test of a package runs.
type reached struct {
	Tests   []string
	Seconds []float64
	Failed  []string
	Blocks  map[string]map[int][]int // the numbers of tests, by file and by the begin of a block, as lineAndColumn
}

// lineAndColumn is a place in a file as one number.
func lineAndColumn(line, column int) int { return line<<12 | column }

// measure runs each test of the packages by itself with coverage, unless that was done before with the same code and
// tests. The result stays in the user's cache.
func (l *laboratory) measure(ctx context.Context, g *ground, c *product, dirs []string, jobs int) (map[string]*reached,
	error,
) {
	cache, err := os.UserCacheDir()
	if cache = filepath.Join(cache, "edda-mutants"); err != nil || os.MkdirAll(cache, 0o700) != nil {
		return nil, fmt.Errorf("no directory for what tests reach: %w", err)
	}
	all, places := map[string]*reached{}, map[string]string{}
	var left []target
	for _, dir := range dirs {
		key, err := g.keyOfTests(dir)
		if err != nil {
			return nil, err
		}
		places[dir] = filepath.Join(cache, strings.ReplaceAll(dir, "/", "+")+"-"+key)
		if all[dir] = readReached(places[dir]); all[dir] == nil {
			left = append(left, target{pkg: "./" + dir})
		}
	}
	if len(left) == 0 {
		return all, nil
	}
	var paths []string
	for _, p := range c.packages {
		paths = append(paths, p.path)
	}
	l.programs = map[string]string{}
	if err := l.link(ctx, l.dir, left, "-cover", "-covermode=set", "-coverpkg="+strings.Join(paths, ",")); err != nil {
		return nil, err
	}
	for n, t := range left {
		dir, begin := filepath.Clean(t.pkg), time.Now()
		if all[dir], err = l.reach(ctx, t, jobs); err != nil {
			return nil, err
		}
		_ = os.Remove(l.programs[t.place()])
		if err := all[dir].write(places[dir]); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(l.out, "measured  %-40s %6.1fs  %d tests, %d failed, %d of %d\n", dir,
			time.Since(begin).Seconds(), len(all[dir].Tests), len(all[dir].Failed), n+1, len(left))
	}
	return all, nil
}

// keyOfTests returns the sum of the code that the tests of a package link, and of these tests.
func (g *ground) keyOfTests(dir string) (string, error) {
	dirs, err := g.depsOf(target{pkg: "./" + dir})
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	write(sum, runtime.Version())
	for _, d := range dirs {
		write(sum, d, fmt.Sprintf("%x", g.sums[d].Sum(nil)))
	}
	files, err := filepath.Glob(filepath.Join(g.root, dir, "*_test.go"))
	for _, name := range files {
		text, failure := os.ReadFile(name)
		err = errors.Join(err, failure)
		write(sum, filepath.Base(name), string(text))
	}
	return fmt.Sprintf("%.10x", sum.Sum(nil)), err
}

func readReached(place string) *reached {
	file, err := os.Open(place)
	if err != nil {
		return nil
	}
	defer file.Close()
	var r reached
	if gob.NewDecoder(bufio.NewReader(file)).Decode(&r) != nil {
		return nil
	}
	return &r
}

func (r *reached) write(place string) error {
	file, err := os.Create(place + ".new")
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(file).Encode(r), file.Close(), os.Rename(file.Name(), place))
}

var testName = regexp.MustCompile(`(?m)^(?:Test|Example|Fuzz)\w*$`)

// reach runs the tests of a program with coverage, one by one. A test that fails is left out.
func (l *laboratory) reach(ctx context.Context, t target, jobs int) (*reached, error) {
	r := &reached{Blocks: map[string]map[int][]int{}}
	program, home := l.programs[t.place()], filepath.Join(l.root, t.pkg)
	if program == "" {
		return r, nil // it does not compile
	}
	list, err := l.command(ctx, home, time.Minute, []string{program, "-test.list=."})
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w\n%s", t.pkg, err, tail(list))
	}
	module, err := os.ReadFile(filepath.Join(l.root, "go.mod"))
	if err != nil {
		return nil, err
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(string(module), "module "), "\n")
	var mu sync.Mutex
	err = each(ctx, jobs, testName.FindAllString(list, -1), func(ctx context.Context, name string) error {
		begin, profile := time.Now(), filepath.Join(l.dir, name+".cover")
		_, failure := l.command(ctx, home, testTime+time.Minute, []string{program, "-test.paniconexit0",
			"-test.timeout=" + testTime.String(), "-test.run=^" + name + "$", "-test.coverprofile=" + profile})
		text, err := os.ReadFile(profile)
		mu.Lock()
		defer mu.Unlock()
		if failure != nil || err != nil {
			r.Failed = append(r.Failed, name)
			return ctx.Err()
		}
		r.Tests, r.Seconds = append(r.Tests, name), append(r.Seconds, time.Since(begin).Seconds())
		for line := range strings.Lines(string(text)) {
			r.add(strings.TrimPrefix(line, strings.TrimSpace(path)+"/"))
		}
		return os.Remove(profile)
	})
	return r, err
}

// add adds a line of the profile of the last test: file.go:12.3,14.5 statements count.
func (r *reached) add(line string) {
	file, rest, _ := strings.Cut(line, ":")
	begin, _, ok := strings.Cut(rest, ",")
	row, column, _ := strings.Cut(begin, ".")
	n, err := strconv.Atoi(row)
	m, err2 := strconv.Atoi(column)
	if !ok || err != nil || err2 != nil {
		return
	}
	if r.Blocks[file] == nil {
		r.Blocks[file] = map[int][]int{}
	}
	at := lineAndColumn(n, m)
	tests := r.Blocks[file][at]
	if last := len(r.Tests) - 1; !strings.HasSuffix(line, " 0\n") && (len(tests) == 0 || tests[len(tests)-1] != last) {
		tests = append(tests, last)
	}
	r.Blocks[file][at] = tests
}

// at returns the tests that run the code at a place: the last block that begins before it. Blocks do not overlap.
func (r *reached) at(p token.Position) []int {
	last, here := -1, lineAndColumn(p.Line, p.Column)
	for begin := range r.Blocks[p.Filename] {
		if begin <= here {
			last = max(last, begin)
		}
	}
	return r.Blocks[p.Filename][last]
}

// reaching returns the tests of a package that run code at some places, the fastest first, with their times.
func (r *reached) reaching(places []token.Position) (tests []string, seconds []float64) {
	found := map[int]bool{}
	for _, p := range places {
		for _, n := range r.at(p) {
			found[n] = true
		}
	}
	order := slices.SortedFunc(maps.Keys(found), func(a, b int) int { return cmp.Compare(r.Seconds[a], r.Seconds[b]) })
	for _, n := range order {
		tests, seconds = append(tests, r.Tests[n]), append(seconds, r.Seconds[n])
	}
	return tests, seconds
}

// places returns the code whose tests reach an edit: for a constant or a variable of a package the code that uses it,
// and for a statement of SQL the code that has its name.
func (c *product) places(e edit) (places []token.Position) {
	names := []string{e.function}
	switch {
	case strings.HasSuffix(e.file, ".sql"):
		names[0] = strconv.Quote(e.function)
	case !e.declared:
		at := slices.IndexFunc(e.p.sources, func(s *source) bool { return s.name == e.file })
		return []token.Position{c.files.Position(e.p.sources[at].tree.FileStart + token.Pos(e.at))}
	}
	for n := 0; n < len(names); n++ {
		for _, p := range c.packages {
			if p != e.p && !ast.IsExported(names[n]) {
				continue
			}
			for _, s := range p.sources {
				in, of := c.mentions(s, names[n])
				places = append(places, in...)
				known := func(name string) bool { return slices.Contains(names, name) }
				names = append(names, slices.DeleteFunc(of, known)...)
			}
		}
	}
	return places
}

// mentions returns the places in functions of a file that have a name or a text, and the names of the constants and
// variables whose declarations have it.
func (c *product) mentions(s *source, word string) (places []token.Position, names []string) {
	for _, decl := range s.tree.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			id, _ := n.(*ast.Ident)
			lit, _ := n.(*ast.BasicLit)
			if !(id != nil && id.Name == word || lit != nil && lit.Value == word) {
				return true
			}
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				places = append(places, c.files.Position(n.Pos()))
				return true
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && n.Pos() >= v.Pos() && n.Pos() < v.End() {
					for _, name := range v.Names {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	return places, names
}
