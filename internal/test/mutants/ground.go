package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"hash"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ground holds the inputs of trials, in a repository without changes. A result is valid as long as its key is the
// same. After a change of a test, or of shared test code, the mutants whose tests use it are tried again; after a
// change of a page, the mutants whose tests read pages; after a change of the code, the mutants whose tests link it,
// or read files outside their package. A comment in Go has no influence.
type ground struct {
	root  string
	sums  map[string]hash.Hash              // of all files except tests, pages and skipped ones, by package
	pages string                            // the sum of all pages
	tests map[string]func() (*tests, error) // by directory
	deps  map[string][]string               // the directories that tests are linked with, by package and tags
}

// tests are the declarations in the test files of a directory.
type tests struct {
	named  map[string][]declaration // functions, methods, types, variables and constants, by their names
	always []declaration            // declarations used in every trial: TestMain, init, imports for their effect
}

// declaration is the text of one declaration, with the names that occur in it.
type declaration struct {
	text      string
	names     []string
	receivers []string // of a method: the names in its receiver, which are a type's and its parameters'
}

// readGround reads the files that git tracks in root. It leaves the page out: a run writes it.
func readGround(ctx context.Context, root, page string) (*ground, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	g := &ground{root: root, sums: map[string]hash.Hash{}, tests: map[string]func() (*tests, error){},
		deps: map[string][]string{}}
	g.sums["."] = sha256.New()
	files, pages := map[string][]string{}, sha256.New()
	names := slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	for _, name := range names {
		if path.Ext(name) == ".go" {
			g.sums[path.Dir(name)] = sha256.New()
		}
	}
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			files[path.Dir(name)] = append(files[path.Dir(name)], name)
		case name != page && !skipped(name):
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			if path.Ext(name) == ".md" {
				write(pages, name, string(text))
				continue
			}
			write(g.sums[g.home(name)], name, code(name, string(text)))
		}
	}
	g.pages = fmt.Sprintf("%x", pages.Sum(nil))
	for dir, names := range files {
		g.tests[dir] = sync.OnceValues(func() (*tests, error) { return readTests(root, names) })
	}
	return g, nil
}

// home returns the package that a file belongs to: its directory, or the next one above that has Go files, or the
// root.
func (g *ground) home(name string) string {
	dir := path.Dir(name)
	for g.sums[dir] == nil && dir != "." {
		dir = path.Dir(dir)
	}
	return dir
}

// code returns the text of a file without the comments of Go, except those that the compiler reads.
func code(name, text string) string {
	if path.Ext(name) != ".go" {
		return text
	}
	var (
		out   strings.Builder
		words scanner.Scanner
		files = token.NewFileSet()
	)
	words.Init(files.AddFile(name, -1, len(text)), []byte(text), nil, scanner.ScanComments)
	for {
		_, kind, word := words.Scan()
		switch {
		case kind == token.EOF:
			return out.String()
		case kind != token.COMMENT || strings.HasPrefix(word, "//go:"):
			write(&out, kind.String(), word)
		}
	}
}

// linked returns the sum of the code that the tests of m link. If they read files of other directories, or m changes
// one, it is the sum of all code. The root, with go.mod, always counts.
func (g *ground) linked(m mutant, used []string) (string, error) {
	dirs, err := g.depsOf(m.target)
	if err != nil {
		return "", err
	}
	other := func(h hunk) bool { return !slices.Contains(dirs, g.home(h.file)) }
	reads := func(text string) bool { return strings.Contains(text, `"..`) }
	if slices.ContainsFunc(m.hunks, other) || slices.ContainsFunc(used, reads) {
		dirs = slices.Sorted(maps.Keys(g.sums))
	}
	sum := sha256.New()
	for _, dir := range dirs {
		write(sum, dir, fmt.Sprintf("%x", g.sums[dir].Sum(nil)))
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// depsOf lists the directories of this module that the tests of a package link, and the root.
func (g *ground) depsOf(t target) ([]string, error) {
	if known := g.deps[t.pkg+" "+t.tags]; known != nil {
		return known, nil
	}
	list := exec.Command("go", "list", "-deps", "-test", "-tags", t.tags, "-f", "{{.Dir}}", t.pkg)
	list.Dir = g.root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages that %s links: %w", t.pkg, err)
	}
	dirs := []string{"."}
	for dir := range strings.Lines(string(out)) {
		below, err := filepath.Rel(g.root, strings.TrimSpace(dir))
		if below = filepath.ToSlash(below); err == nil && g.sums[below] != nil {
			dirs = append(dirs, below)
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	g.deps[t.pkg+" "+t.tags] = dirs
	return dirs, nil
}

// skipped reports whether no trial depends on a file of this command. The keys include paragraphs of the catalogue,
// and of the command's code only the parts that try and judge count.
func skipped(name string) bool {
	rest, ours := strings.CutPrefix(name, "internal/test/mutants/")
	return ours && !slices.Contains([]string{"compile.go", "mutant.go", "trial.go", "weave.go"}, rest)
}

// write writes texts so that different lists of texts always differ.
func write(to io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(to, "%d %s", len(text), text)
	}
}

func readTests(root string, names []string) (*tests, error) {
	t := &tests{named: map[string][]declaration{}}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return t, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return t, err
		}
		tags := ""
		for line := range strings.Lines(string(text[:file.Package-file.FileStart])) {
			if strings.HasPrefix(line, "//go:build ") {
				tags = line
			}
		}
		for _, decl := range file.Decls {
			d := declarationOf(decl, file, tags+string(text[decl.Pos()-file.FileStart:decl.End()-file.FileStart]))
			t.add(decl, d, strings.HasSuffix(file.Name.Name, "_test"))
		}
	}
	return t, nil
}

// declarationOf adds to the text which packages of file its names refer to.
func declarationOf(decl ast.Decl, file *ast.File, text string) declaration {
	d, seen := declaration{}, map[string]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && !seen[name.Name] {
			seen[name.Name] = true
			d.names = append(d.names, name.Name)
		}
		return true
	})
	for _, spec := range file.Imports {
		if name := packageName(spec); seen[name] {
			text += "\n" + name + " " + spec.Path.Value
		}
	}
	if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				d.receivers = append(d.receivers, name.Name)
			}
			return true
		})
	}
	d.text = code("x.go", text)
	return d
}

// packageName returns the name that a file has for a package that it imports, as far as the path shows it.
func packageName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	place := strings.Trim(spec.Path.Value, "\"")
	name := path.Base(place)
	if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" { // of a module's version
		name = path.Base(path.Dir(place))
	}
	return name
}

// add adds a declaration under its names. A declaration without a name for others counts always.
func (t *tests) add(decl ast.Decl, d declaration, external bool) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if name := decl.Name.Name; name != "TestMain" && name != "init" {
			t.named[name] = append(t.named[name], d)
			if decl.Recv != nil && (decl.Name.IsExported() || !external) { // the code may call it through an interface
				for _, receiver := range d.receivers {
					t.named[receiver] = append(t.named[receiver], d)
				}
			}
			return
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if i, ok := spec.(*ast.ImportSpec); ok && (i.Name == nil || i.Name.Name != "_" && i.Name.Name != ".") {
				continue // it counts with the declarations that use it
			} else if ok {
				t.always = append(t.always, declaration{text: i.Path.Value})
				continue
			}
			for _, name := range declared(spec) {
				if name == "_" {
					t.always = append(t.always, d)
				}
				t.named[name] = append(t.named[name], d)
			}
		}
		return
	}
	t.always = append(t.always, d)
}

func declared(spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// used returns the texts of all declarations that some tests may use, sorted. It follows names: a test uses every
// declaration whose name occurs in it, these use others, and so on. It does not look at types, so a call of a method
// counts as a call of all methods with that name. A type brings the methods with it that an interface may call.
func (t *tests) used(tops []string) []string {
	seen, texts := map[string]bool{}, map[string]bool{}
	var visit func(all []declaration)
	visit = func(all []declaration) {
		for _, d := range all {
			texts[d.text] = true
			for _, name := range d.names {
				if !seen[name] {
					seen[name] = true
					visit(t.named[name])
				}
			}
		}
	}
	visit(t.always)
	for _, top := range tops {
		visit(t.named[top])
	}
	return slices.Sorted(maps.Keys(texts))
}

// key returns the sum of all inputs of the trial of m: the code, the tests that it names with everything they use,
// and m itself.
func (g *ground) key(m mutant) (string, error) {
	sum := sha256.New()
	write(sum, runtime.Version(), m.name, m.target.pkg, m.target.tags)
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
	tops := make([]string, len(m.target.tests))
	for n, name := range m.target.tests {
		tops[n], _, _ = strings.Cut(name, "/")
	}
	used := t.used(tops)
	linked, err := g.linked(m, used)
	if err != nil {
		return "", err
	}
	write(sum, linked)
	write(sum, m.target.tests...)
	write(sum, used...)
	if slices.ContainsFunc(used, func(text string) bool { return strings.Contains(text, ".md") }) {
		write(sum, g.pages)
	}
	return fmt.Sprintf("%.20x", sum.Sum(nil)), nil
}
