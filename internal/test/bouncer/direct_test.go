package bouncer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A line of direct.txt names a test that is there, and has a reason.
func TestDirectNamesTestsThatAreThere(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("direct.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^(Test[A-Z]\w+) +\S.*$`).FindAllStringSubmatch(string(list), -1)
	if len(lines) == 0 || len(lines) != strings.Count(string(list), "\nTest") {
		t.Fatalf("%d tests have a reason", len(lines))
	}
	defined := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			defined[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !defined[line[1]] {
			t.Errorf("there is no %s", line[1])
		}
	}
}
