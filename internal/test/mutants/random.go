package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// random draws mutants, and lists or tries them.
func random(ctx context.Context, s settings) error {
	if s.seed == "" {
		return errors.New("-random wants -seed")
	}
	in, err := regexp.Compile(s.in)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	c, err := loadProduct(ctx, root)
	if err != nil {
		return err
	}
	chosen, err := c.draw(s.random, s.seed, in)
	if err != nil {
		return err
	}
	if s.list {
		for _, d := range chosen {
			_, _ = fmt.Fprintf(s.out, "%s %s\n%s", d.name, d.guards, d.difference())
		}
		return nil
	}
	l, clean, err := openLaboratory(ctx)
	if err != nil {
		return err
	}
	l.out = s.out
	return errors.Join(l.hunt(ctx, s, c, chosen), clean())
}

// hunt tries the drawn mutants, and writes the page. It skips a mutant that the record has as killed, or for this
// commit.
func (l *laboratory) hunt(ctx context.Context, s settings, c *product, chosen []drawn) error {
	why, err := arguments(argumentsText)
	if err != nil {
		return err
	}
	seed := s.seed[:min(12, len(s.seed))]
	r, err := openRecord(ctx, l.root, s.record, s.page, func() (map[string]string, error) {
		keys := map[string]string{}
		for _, d := range chosen {
			keys[d.name] = seed
		}
		return keys, nil
	})
	if err != nil {
		return err
	}
	r.whole = false // lines of other draws stay
	t := &bag{settings: s, record: r, commit: r.short()}
	err = errors.Join(l.stages(ctx, c, t, chosen), r.close())
	if err == nil && s.page != "" {
		err = writeRandomPage(filepath.Join(l.root, s.page), filepath.Join(l.root, s.record), why)
	}
	sum := shares{}
	for _, d := range chosen {
		sum.count(d.name, r.ended[d.name], why)
	}
	_, _ = fmt.Fprintf(s.out, "random=%d killed=%d own=%d survived=%d argued=%d neither=%d\n", len(chosen), sum.killed,
		sum.own, sum.survived, sum.argued, sum.neither)
	if err == nil && sum.survived > 0 {
		err = fmt.Errorf("%d survived: kill them with a test, or argue in arguments.txt that no test can", sum.survived)
	}
	return err
}

// passed is the state of a mutant after the tests of its own package, and before the tests of other packages.
const passed verdict = "passed"

// stages tries mutants with the tests of their own packages. It tries the survivors with the tests of other packages.
func (l *laboratory) stages(ctx context.Context, c *product, t *bag, chosen []drawn) error {
	g, err := readGround(ctx, l.root, t.page)
	if err != nil {
		return err
	}
	for _, last := range t.rounds() {
		t.last, t.left = last, nil
		for _, d := range chosen {
			if v := t.verdict(d.name); v == "" || last && v == passed {
				t.left = append(t.left, d)
			}
		}
		if len(t.left) == 0 {
			continue
		}
		dirs, err := testers(g, c, t.left, last)
		if err != nil {
			return err
		}
		reached, err := l.measure(ctx, g, c, dirs, t.jobs)
		if err != nil {
			return err
		}
		if err := l.tryDrawn(ctx, c, t, reached); err != nil {
			return err
		}
	}
	return nil
}

// bag has the mutants to try, and takes the results. It is safe for concurrent use.
type bag struct {
	settings
	record *record
	commit string
	last   bool // the mutants have passed the tests of their own packages
	begin  time.Time
	left   []drawn

	mu    sync.Mutex
	tried int
}

// rounds returns, for each round, whether it uses the tests of other packages.
func (t *bag) rounds() []bool {
	if t.own {
		return []bool{false}
	}
	return []bool{false, true}
}

// verdict returns the recorded result, or "". Only killed mutants keep theirs on other commits.
func (t *bag) verdict(name string) verdict {
	f := append(strings.Fields(t.record.ended[name]), "", "")
	if v := verdict(f[0]); v == killed || f[1] == t.commit {
		return v
	}
	return ""
}

// group are the tests of a package that reach a mutant, the fastest first.
type group struct {
	pkg     string
	tests   []string
	seconds []float64
}

func (g group) total() (sum float64) {
	for _, s := range g.seconds {
		sum += s
	}
	return sum
}

// tryDrawn compiles the mutants together, and tries each with the tests that reach it.
func (l *laboratory) tryDrawn(ctx context.Context, c *product, t *bag, reached map[string]*reached) error {
	t.begin, t.tried = time.Now(), 0
	groups, tests, all := map[string][]group{}, map[string]target{}, []mutant{}
	for _, d := range t.left {
		groups[d.name] = c.groups(d.edit, reached, t.last)
		for _, g := range groups[d.name] {
			tests[g.pkg] = target{pkg: g.pkg}
		}
		all = append(all, d.mutant)
	}
	l.programs, l.woven = map[string]string{}, map[string]bool{}
	if len(tests) > 0 {
		linked := slices.SortedFunc(maps.Values(tests), func(a, b target) int { return strings.Compare(a.pkg, b.pkg) })
		if err := l.compileWith(ctx, l.dir, all, linked); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(l.out, "compiled  %d mutants together, %d to compile alone  %6.1fs\n", len(l.woven),
		len(all)-len(l.woven), time.Since(t.begin).Seconds())
	t.begin = time.Now()
	return each(ctx, t.jobs, t.left, func(ctx context.Context, d drawn) error {
		begin := time.Now()
		r, err := l.attack(ctx, d.mutant, groups[d.name])
		if err != nil {
			return err
		}
		return t.add(d, r, time.Since(begin))
	})
}

// testers returns the directories of tests that may reach a mutant: its own, or others that link it.
func testers(g *ground, c *product, all []drawn, others bool) (dirs []string, err error) {
	broken := map[string]bool{}
	for _, d := range all {
		broken[d.theme] = true
	}
	for _, dir := range c.tested {
		if !others {
			if broken[dir] {
				dirs = append(dirs, dir)
			}
			continue
		}
		deps, err := g.depsOf(target{pkg: "./" + dir})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(deps, func(d string) bool { return broken[d] }) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// groups returns the tests of the own package, or of other packages, that reach an edit. The fastest package is first.
func (c *product) groups(e edit, reached map[string]*reached, others bool) (all []group) {
	places := c.places(e)
	for dir, r := range reached {
		if tests, seconds := r.reaching(places); len(tests) > 0 && (dir != e.p.dir) == others {
			all = append(all, group{"./" + dir, tests, seconds})
		}
	}
	slices.SortFunc(all, func(a, b group) int { return cmp.Compare(a.total(), b.total()) })
	return all
}

// chunkTime is the time that the tests of one process took one by one, at most, unless it is one test.
const chunkTime = 40.0

// chunks divides the tests into groups, each for one process.
func (g group) chunks() (all []group) {
	var sum float64
	for n, s := range g.seconds {
		if sum += s; n == 0 || sum > chunkTime {
			all, sum = append(all, group{pkg: g.pkg}), s
		}
		last := &all[len(all)-1]
		last.tests, last.seconds = append(last.tests, g.tests[n]), append(last.seconds, s)
	}
	return all
}

// result is the end of a trial: by is the package whose tests decided it, or "-".
type result struct {
	verdict
	by, output string
}

// attack runs the tests that reach a mutant until some fail.
func (l *laboratory) attack(ctx context.Context, m mutant, groups []group) (r result, err error) {
	var flags []string
	if !l.woven[m.name] {
		texts, err := m.files(l.root)
		if err != nil {
			return r, err
		}
		list, err := overlay(l.root, filepath.Join(l.dir, "alone-"+m.name), texts)
		if err != nil {
			return r, err
		}
		flags = []string{"-overlay", list}
	}
	for _, g := range groups {
		for _, chunk := range g.chunks() {
			r = l.shoot(ctx, m, chunk, flags)
			if r.verdict != survived || ctx.Err() != nil {
				return r, ctx.Err()
			}
		}
	}
	return result{survived, "-", r.output}, ctx.Err()
}

// shoot runs some tests with a mutant on. A failure kills it if the same tests fail once more, and pass without it.
func (l *laboratory) shoot(ctx context.Context, m mutant, g group, flags []string) result {
	t := target{pkg: g.pkg, tests: g.tests}
	patience := time.Minute + time.Duration(3*g.total())*time.Second
	output, failure := l.fire(ctx, m, t, patience, flags)
	v := outcome(output, failure)
	if v == killed {
		if failed := t.failed(output); len(failed) > 0 {
			t.tests = failed
		}
		again, failure := l.fire(ctx, m, t, patience, flags)
		v = outcome(again, failure)
	}
	if v == killed {
		if _, failure = l.fire(ctx, mutant{}, t, patience, nil); failure != nil {
			v = survived
		}
	}
	return result{v, g.pkg, output}
}

// fire runs tests with a mutant on, or without one if it has no name. It limits the memory of the tests to 8 GB.
func (l *laboratory) fire(ctx context.Context, m mutant, t target, patience time.Duration, flags []string) (string,
	error,
) {
	const limited = `ulimit -v 8388608; exec "$@"`
	args := []string{"sh", "-c", limited, "sh"}
	program := l.programs[t.place()]
	if program != "" && len(flags) == 0 {
		args = append(args, program, "-test.paniconexit0", "-test.failfast", "-test.v=true",
			"-test.timeout="+patience.String(), "-test.run="+t.pattern())
		return l.command(ctx, filepath.Join(l.root, t.pkg), patience+time.Minute, args, onVariable+"="+m.name)
	}
	args = slices.Concat([]string{"go", "test", "-count=1", "-vet=off", "-ldflags=-w", "-failfast", "-v", "-timeout",
		patience.String()}, flags, []string{"-run", t.pattern(), t.pkg})
	return l.command(ctx, l.root, patience+compileTime, args)
}

// outcome reads the output of a run of tests with a random mutant.
func outcome(output string, failure error) verdict {
	switch {
	case failure == nil:
		return survived
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return broken
	case strings.Contains(output, "panic: test timed out after"), strings.Contains(output, "out of memory"),
		strings.Contains(failure.Error(), "signal: killed"):
		return hung
	}
	return killed
}

// add reports and records a trial.
func (t *bag) add(d drawn, r result, took time.Duration) error {
	v, by := r.verdict, r.by
	t.mu.Lock()
	defer t.mu.Unlock()
	if v == survived && !t.last {
		v = passed
	}
	t.tried++
	rest := time.Since(t.begin) / time.Duration(t.tried) * time.Duration(len(t.left)-t.tried)
	_, _ = fmt.Fprintf(t.out, "%-9s %-20s %-24s %6.1fs  %d of %d, %v left\n", v, d.name, by, took.Seconds(), t.tried,
		len(t.left), rest.Round(time.Second))
	if v != killed && (v != passed || t.own) {
		_, _ = fmt.Fprintf(t.out, "    %s\n%s", d.guards, d.difference())
	}
	if t.verbose {
		_, _ = fmt.Fprintln(t.out, tail(r.output))
	}
	if by == d.target.pkg {
		by = ownTests
	}
	return t.record.add(d.name, fmt.Sprintf("%s %s %s %s %s", v, t.commit, by, d.edit.file, d.edit.function))
}
