package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each module whose licences are listed is looked at.
func TestModulesAreThoseThatUsersLink(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, ".ci/licences/survey.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, parts, _ := strings.Cut(string(text), "var parts = []part{")
	parts, _, _ = strings.Cut(parts, "\n}")
	found := regexp.MustCompile(`(?m)^\t\{"[^"]+", "([^"]+)",`).FindAllStringSubmatch(parts, -1)
	if len(found) == 0 {
		t.Fatal("no part is found")
	}
	for _, part := range found {
		if !slices.Contains(modules, part[1]) {
			t.Errorf("the module %s is not looked at", part[1])
		}
	}
}

// A vulnerability that is called is found, of a dependency as an error and of Go as a note. A vulnerability of a module
// that is only required is not reported.
func TestFindings(t *testing.T) {
	t.Parallel()
	found, err := read(strings.NewReader(`{"config": {}} {"osv": {"id": "GO-1", "summary": "Crash in q"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.3.0", "trace": [{"module": "example.org/q", "version": "v1.2.0"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.3.0", "trace": [{"module": "example.org/q", "version": "v1.2.0",
  "package": "example.org/q", "function": "F"}, {"module": "github.com/edda-go/edda"}]}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.org/r", "package": "example.org/r"}]}}
{"finding": {"osv": "GO-3", "trace": [{"module": "stdlib", "package": "net/http", "function": "G"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.ofModules) != 1 || len(found.ofGo) != 1 ||
		found.ofModules["GO-1"] != "GO-1: Crash in q: example.org/q@v1.2.0, mended in v1.3.0" {
		t.Errorf("found %v", found)
	}
	if _, err := read(strings.NewReader(`{"finding": `)); err == nil {
		t.Error("half a stream is taken for a whole one")
	}
}
