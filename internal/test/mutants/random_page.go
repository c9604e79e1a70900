package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ownTests names, in the record, the tests of the package that a mutant breaks.
const ownTests = "own"

// shares counts random mutants by their result.
type shares struct{ drawn, killed, own, survived, argued, neither int }

// count adds a result: the verdict, the commit, the killer, the file and the function. No result counts as neither.
func (s *shares) count(name, how string, why map[string]string) {
	f := append(strings.Fields(how), "", "", "")
	s.drawn++
	switch {
	case f[0] == string(killed):
		s.killed++
		if f[2] == ownTests {
			s.own++
		}
	case f[0] != string(survived):
		s.neither++
	case why[name] != "":
		s.argued++
	default:
		s.survived++
	}
}

// percent returns a part of a whole, rounded down.
func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", 100*part/whole)
}

func (s *shares) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %d | %d | %d |\n", name, s.drawn, s.killed,
		percent(s.killed, s.killed+s.survived), percent(s.own, s.killed), s.survived, s.argued, s.neither)
}

// core matches the packages of the engine, the stores and the scheduler.
var core = regexp.MustCompile(
	`^(internal/(engine|store)/|(persistence|recoverability|history|audit|migrations|scheduler|outbox)(/|$))`)

const randomHead = "\n## Random mutants\n"

// randomPart returns the part of the page that random mutants wrote.
func randomPart(page string) string {
	if at := strings.Index(page, randomHead); at >= 0 {
		return page[at:]
	}
	return ""
}

// writeRandomPage writes the part of the page from the record of all draws.
func writeRandomPage(page, record string, why map[string]string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	file, err := os.Open(record)
	if err != nil {
		return err
	}
	defer file.Close()
	part, err := randomPage(file, why)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(strings.TrimSuffix(string(old), randomPart(string(old)))+part), 0o644)
}

// randomPage returns the results of all draws in a record, package by package.
func randomPage(record io.Reader, why map[string]string) (string, error) {
	last, order := map[string]string{}, []string{} // by draw and mutant
	lines := bufio.NewScanner(record)
	for lines.Scan() {
		seed, rest, _ := strings.Cut(lines.Text(), " ")
		name, how, _ := strings.Cut(rest, " ")
		if last[seed+" "+name] == "" {
			order = append(order, seed+" "+name)
		}
		last[seed+" "+name] = how
	}
	seeds, packages, sums := map[string]*shares{}, map[string]*shares{}, map[string]*shares{}
	var draws []string
	for _, key := range order {
		seed, name, _ := strings.Cut(key, " ")
		f := append(strings.Fields(last[key]), "", "", "", "")
		dir, wing := path.Dir(f[3]), "elsewhere"
		if core.MatchString(dir) {
			wing = "engine, stores, scheduler"
		}
		if seeds[seed] == nil {
			draws = append(draws, seed)
		}
		for key, of := range map[string]map[string]*shares{seed: seeds, dir: packages, wing: sums, "all": sums} {
			if of[key] == nil {
				of[key] = &shares{}
			}
			of[key].count(name, last[seed+" "+name], why)
		}
	}
	var b strings.Builder
	const columns = "| drawn | killed | share | by own tests | survived | argued | neither |\n" +
		"|---|---|---|---|---|---|---|---|\n"
	b.WriteString(randomHead + randomText + "\n| draw " + columns)
	for _, seed := range draws {
		b.WriteString(seeds[seed].row(seed))
	}
	b.WriteString("\n| package " + columns)
	for _, all := range []map[string]*shares{packages, sums} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b.WriteString(all[name].row(name))
		}
	}
	return b.String(), lines.Err()
}

const randomText = `
` + "`make mutants-random`" + ` wrote this part. A draw takes lines of the product at random, by a seed that is the
commit before the draw, and breaks each: it negates a condition, drops a statement, a conjunct, a lock or an order,
ignores an error, swaps arguments, or changes a number. A mutant is tried with the tests that run its line, those of its
own package first, until some fail. *Share* is the killed part of the killed and survived mutants. *By own tests* is the
part of the killed mutants that tests of their own package kill. No test can see an *argued* survivor:
` + "`internal/test/mutants/arguments.txt`" + ` has the reasons. A mutant that hung or did not compile is *neither*.
`
