package run_test

import (
	"embed"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

//go:embed *.go
var sources embed.FS

// Groups need no dependency to cancel goroutines and wait for them: contexts and wait groups of the standard library
// suffice.
func TestGroupsNeedTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	entries, err := sources.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	contexts := false
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text, err := sources.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range file.Imports {
			path := strings.Trim(one.Path.Value, `"`)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s: the standard library only", entry.Name(), path)
			}
			contexts = contexts || path == "context"
		}
	}
	if !contexts {
		t.Error("no file imports context: what ends a group?")
	}
}
