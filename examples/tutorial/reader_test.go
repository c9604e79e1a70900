package tutorial_test

import (
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddatest"
)

// parts are the pages of the tutorial.
var parts = []string{"1-a-saga", "2-another-service", "3-time", "4-break-and-repair", "5-change", "6-production"}

var (
	block    = regexp.MustCompile("(?s)(.*?)\n```go\n(.*?)\n```\n")
	fileName = regexp.MustCompile("`([a-z_/]+\\.go)`")
	quoted   = regexp.MustCompile("`([^`]+)`")
	deleted  = regexp.MustCompile("`([a-z_]+\\.go)` [^`]*: delete it")
)

// typed returns the files of a reader who has followed the first parts. A block of Go belongs to the file that the text
// before it names last. A block with a package clause is the whole file. Another block replaces the declarations of the
// same names, or comes at the end, and the paragraph before it says which imports to add.
func typed(t *testing.T, upTo int) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, part := range parts[:upTo] {
		for _, m := range block.FindAllStringSubmatch(readFile(t, "../../docs/tutorial/"+part+".md"), -1) {
			text, code := m[1], m[2]+"\n"
			if gone := deleted.FindStringSubmatch(text); gone != nil {
				delete(files, gone[1])
			}
			names := fileName.FindAllStringSubmatch(text, -1)
			if len(names) == 0 {
				t.Fatalf("%s: no file is named before\n%s", part, code)
			}
			name := names[len(names)-1][1]
			if !strings.HasPrefix(code, "package ") {
				_, imports, _ := strings.Cut(text[max(0, strings.LastIndex(text, "\n\n")):], "import ")
				code = changed(t, files[name], code, quoted.FindAllStringSubmatch(imports, -1))
			}
			files[name] = code
		}
	}
	return files
}

// changed returns a file with other declarations, and with more imports.
func changed(t *testing.T, file, block string, imports [][]string) string {
	t.Helper()
	for _, path := range imports {
		file = strings.Replace(file, "import (\n", "import (\n\t\""+path[1]+"\"\n", 1)
	}
	for _, d := range declarations(t, "package p\n\n"+block) {
		was := declarations(t, file)
		at := slices.IndexFunc(was, func(w declaration) bool { return w.name == d.name })
		if at < 0 {
			file += "\n" + d.text + "\n"
			continue
		}
		file = strings.Replace(file, was[at].text, d.text, 1)
	}
	return file
}

// declaration is one of a file, with its comment.
type declaration struct{ name, text string }

func declarations(t *testing.T, file string) (all []declaration) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", file, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	for _, d := range parsed.Decls {
		name, begin := "", d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			name = d.Name.Name
			if d.Doc != nil {
				begin = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			if d.Doc != nil {
				begin = d.Doc.Pos()
			}
			name = nameOf(d.Specs[0])
		}
		all = append(all, declaration{name, file[files.Position(begin).Offset:files.Position(d.End()).Offset]})
	}
	return all
}

func nameOf(s ast.Spec) string {
	if s, ok := s.(*ast.ValueSpec); ok {
		return s.Names[0].Name
	}
	return s.(*ast.TypeSpec).Name.Name
}

// overlay writes the files of the reader to a place of the test, and returns the flag with which the go command sees
// them in a folder of this module.
func overlay(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	place, here := t.TempDir(), readDirectory(t)
	replace := map[string]string{}
	for name, code := range files {
		path := filepath.Join(place, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, folder, name)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(place, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + path
}

// buildPart compiles the program that the reader has after a part.
func buildPart(t *testing.T, part int) string {
	t.Helper()
	return build(t, "reader", overlay(t, "reader", typed(t, part)))
}

// After each of the first five parts the tests of the reader pass.
func TestReaderTestsEachPart(t *testing.T) {
	t.Parallel()
	for n, part := range parts[:5] {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "shop.test")
			goCommand(t, "test", "-c", "-vet=off", "-o", program, overlay(t, "reader", typed(t, n+1)), "./reader")
			tests := exec.Command(program, "-test.v")
			tests.Dir = t.TempDir()
			tests.Env = append(os.Environ(), "DATABASE_URL="+eddatest.DSN(t))
			printed, err := tests.CombinedOutput()
			if err != nil || !strings.Contains(string(printed), "--- PASS: Test") {
				t.Errorf("the tests of the reader: %v\n%s", err, printed)
			}
		})
	}
}

// After the last part the reader has the program of the folder shop, whose tests run with all others.
func TestReaderHasTheShop(t *testing.T) {
	t.Parallel()
	files, want := typed(t, len(parts)), map[string]bool{}
	for _, pattern := range []string{"shop/*.go", "shop/*/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if name := strings.TrimPrefix(path, "shop/"); filepath.Base(name) != "doc.go" {
				want[name] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Fatalf("the reader has the files %v, and the shop %v", got, want)
	}
	for name, code := range files {
		formatted, err := format.Source([]byte(code))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if was := readFile(t, "shop/"+name); string(formatted) != was {
			t.Errorf("the reader has %s as\n%s\nand the shop as\n%s", name, formatted, was)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readDirectory(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return here
}
