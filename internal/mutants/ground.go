package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ground is what trials depend on, in a repository without changes. A result stays true while its key stays the same: a change of
// one test makes the mutants that name it be tried again, and no others; any other change of code, SQL or text all of them.
type ground struct {
	root  string
	sum   string                           // of all files except tests and those of skipped
	tests map[string]func() (tests, error) // by directory
}

// tests are the test files of a directory: the functions that go test runs, by name, and the sum of everything else in them.
type tests struct {
	functions map[string]string
	rest      string
}

// readGround reads the files that git knows in root. The page is no part of it: a run writes it.
func readGround(ctx context.Context, root, page string) (*ground, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	g := &ground{root: root, tests: map[string]func() (tests, error){}}
	files, sum := map[string][]string{}, sha256.New()
	for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00")) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			files[path.Dir(name)] = append(files[path.Dir(name)], name)
		case name != page && !skipped(name):
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			write(sum, name, string(text))
		}
	}
	g.sum = fmt.Sprintf("%x", sum.Sum(nil))
	for dir, names := range files {
		g.tests[dir] = sync.OnceValues(func() (tests, error) { return readTests(root, names) })
	}
	return g, nil
}

// skipped are files on which no trial depends: the catalogue, whose paragraphs are in the keys, and of this command all but what tries
// and judges.
func skipped(name string) bool {
	rest, ours := strings.CutPrefix(name, "internal/mutants/")
	return ours && rest != "trial.go" && rest != "mutant.go"
}

// write writes texts so that no two lists of texts look alike.
func write(to io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(to, "%d %s", len(text), text)
	}
}

func readTests(root string, names []string) (tests, error) {
	t, rest := tests{functions: map[string]string{}}, sha256.New()
	for _, name := range names {
		bytes, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return t, err
		}
		text, end := string(bytes), 0
		file, err := parser.ParseFile(token.NewFileSet(), name, bytes, parser.SkipObjectResolution)
		if err != nil {
			return t, err
		}
		write(rest, name)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !isRun(f.Name.Name) {
				continue
			}
			from, to := int(f.Pos()-file.FileStart), int(f.End()-file.FileStart)
			t.functions[f.Name.Name] += text[from:to]
			write(rest, text[end:from])
			end = to
		}
		write(rest, text[end:])
	}
	t.rest = fmt.Sprintf("%x", rest.Sum(nil))
	return t, nil
}

// isRun reports whether go test runs a function of that name by itself: one that the others do not call.
func isRun(name string) bool {
	return name != "TestMain" && slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(kind string) bool { return strings.HasPrefix(name, kind) })
}

// key is the sum of all that the trial of m depends on: the code, what its package's tests share, the tests that it names, and itself.
func (g *ground) key(m mutant) (string, error) {
	sum := sha256.New()
	write(sum, g.sum, m.name, m.target.pkg, m.target.tags, m.hangs.String())
	for _, h := range m.hunks {
		write(sum, h.file, h.old, h.now)
	}
	read := g.tests[path.Clean(m.target.pkg)]
	if read == nil {
		return "", fmt.Errorf("mutant %s: %s has no tests", m.name, m.target.pkg)
	}
	t, err := read()
	if err != nil {
		return "", err
	}
	write(sum, t.rest)
	for _, name := range m.target.tests {
		top, _, _ := strings.Cut(name, "/")
		write(sum, name, t.functions[top])
	}
	return fmt.Sprintf("%.20x", sum.Sum(nil)), nil
}
