package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A migration may replace a function of an earlier one. A mutant of the earlier one changes nothing from then on.
func TestMutantsChangeWhatIsInForce(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, "migrations", "0*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // the last migration that defines each function
	texts := map[string]string{}
	for _, path := range paths { // in their order
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := "migrations/" + filepath.Base(path)
		texts[name] = string(text)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			last[found[1]] = name
		}
	}
	for _, m := range theCatalog(t) {
		for _, h := range m.hunks {
			if f := functionAround(texts[h.file], h.old); f != "" && last[f] != h.file {
				t.Errorf("mutant %s changes %s in %s, which %s replaces", m.name, f, h.file, last[f])
			}
		}
	}
}

var function = regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|VIEW) :schema\.(\w+)`)

// functionAround returns the function that contains a text, or "".
func functionAround(text, part string) string {
	before, _, there := strings.Cut(text, part)
	found := function.FindAllStringSubmatchIndex(before, -1)
	if !there || len(found) == 0 {
		return ""
	}
	in := found[len(found)-1]
	if next := strings.LastIndex(before, "\nCREATE "); next >= in[0] {
		return "" // part is not in a function
	}
	return before[in[2]:in[3]]
}
