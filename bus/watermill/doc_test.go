package watermill_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Alerts are written on the texts of the log.
func TestEveryLogLineIsListed(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"(edda: [^"]+)"`)
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range text.FindAllStringSubmatch(string(code), -1) {
			if !strings.HasSuffix(file, "_test.go") && !strings.Contains(string(doc), m[1]) {
				t.Errorf("%s logs %q, which doc.go does not list", file, m[1])
			}
		}
	}
}
