package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits on the size of things that a reader has to understand as a whole. A larger thing has a second job.
const (
	mostFiles    = 25 // of a package, without tests
	mostMethods  = 30 // of a type
	mostFields   = 20 // of a struct, including fields of embedded structs of its package
	mostNames    = 70 // exported by a package, including methods of exported types
	mostPublic   = 140
	mostColumns  = 120 // of a line; a tab counts four
	columnsOfTab = 4
)

// public are the packages that users read: they may export up to mostPublic names.
var public = []string{"bus", "operate", "saga", "scheduler"}

// pack is one package, without tests.
type pack struct {
	files   int
	methods map[string]int // by the name of their type
	structs map[string]*ast.StructType
	names   []string // exported
}

func packs(t *testing.T) map[string]*pack {
	t.Helper()
	found := map[string]*pack{}
	sources(t, func(path string, text []byte) {
		if isTest(path) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if found[dir] == nil {
			found[dir] = &pack{methods: map[string]int{}, structs: map[string]*ast.StructType{}}
		}
		found[dir].add(file)
	})
	return found
}

func (p *pack) add(file *ast.File) {
	p.files++
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.addFunction(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.addSpec(spec)
			}
		}
	}
}

func (p *pack) addFunction(d *ast.FuncDecl) {
	if d.Recv == nil {
		p.export(d.Name)
		return
	}
	of := typeName(d.Recv.List[0].Type)
	p.methods[of]++
	if ast.IsExported(of) {
		p.export(d.Name)
	}
}

func (p *pack) addSpec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		p.export(spec.Name)
		if s, ok := spec.Type.(*ast.StructType); ok {
			p.structs[spec.Name.Name] = s
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			p.export(name)
		}
	}
}

func (p *pack) export(name *ast.Ident) {
	if name.IsExported() {
		p.names = append(p.names, name.Name)
	}
}

// typeName returns the name of a type in its package, without its pointer and its parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// fields counts the fields of s and of the structs of its package that it embeds.
func (p *pack) fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		embedded := p.structs[typeName(f.Type)]
		switch {
		case len(f.Names) == 0 && embedded != nil && embedded != s:
			n += p.fields(embedded)
		default:
			n += max(1, len(f.Names))
		}
	}
	return n
}

func TestPackagesFitInAHead(t *testing.T) {
	t.Parallel()
	inPackage, methods, fields, names := sizes{}, sizes{}, sizes{}, sizes{}
	for dir, p := range packs(t) {
		inPackage[dir] = p.files
		for of, n := range p.methods {
			methods[dir+" "+of] = n
		}
		for name, s := range p.structs {
			fields[dir+" "+name] = p.fields(s)
		}
		names[dir] = len(p.names)
	}
	inPackage.hold(t, "files", same(mostFiles))
	methods.hold(t, "methods", same(mostMethods))
	fields.hold(t, "fields", same(mostFields))
	names.hold(t, "exported names", mostNamesOf)
}

// The budget of the whole repository. It may only fall, unless the page of a decision argues for more.
const (
	mostGoLines   = 214_300
	mostTextLines = 254_200 // of .go, .sql, .md, .html, .txt and .golden
	mostFull      = 49      // sizes within a tenth of their limit
)

func TestRepositoryFitsItsBudget(t *testing.T) {
	t.Parallel()
	inGo, inAll := 0, 0
	files(t, []string{".go", ".sql", ".md", ".html", ".txt", ".golden"}, func(path string, text []byte) {
		n := bytes.Count(text, []byte("\n"))
		inAll += n
		if filepath.Ext(path) == ".go" {
			inGo += n
		}
	})
	t.Logf("%d lines of Go, %d of text", inGo, inAll)
	if inGo > mostGoLines || inAll > mostTextLines {
		t.Errorf("%d lines of Go and %d of text, the limits are %d and %d", inGo, inAll, mostGoLines, mostTextLines)
	}
}

// A size at its limit was reached by slicing. Few sizes may be near theirs.
func TestLittleIsFull(t *testing.T) {
	t.Parallel()
	var full []string
	note := func(what string, n, limit int) {
		if 10*n > 9*limit {
			full = append(full, fmt.Sprintf("%s: %d of %d", what, n, limit))
		}
	}
	for dir, p := range packs(t) {
		note(dir+" files", p.files, mostFiles)
		note(dir+" names", len(p.names), mostNamesOf(dir))
		for of, n := range p.methods {
			note(dir+" "+of+" methods", n, mostMethods)
		}
		for name, s := range p.structs {
			note(dir+" "+name+" fields", p.fields(s), mostFields)
		}
	}
	slices.Sort(full)
	if len(full) > mostFull {
		t.Errorf("%d sizes are within a tenth of their limit, at most %d may be:\n%s", len(full), mostFull,
			strings.Join(full, "\n"))
	}
	t.Logf("%d sizes are within a tenth of their limit", len(full))
}

func same(most int) func(string) int { return func(string) int { return most } }

func mostNamesOf(dir string) int {
	if slices.Contains(public, dir) {
		return mostPublic
	}
	return mostNames
}

// sizes are measurements of one kind, by the name of the measured thing.
type sizes map[string]int

func (s sizes) hold(t *testing.T, what string, mostOf func(string) int) {
	t.Helper()
	for _, of := range slices.Sorted(maps.Keys(s)) {
		if most := mostOf(of); s[of] > most {
			t.Errorf("%s has %d %s, the limit is %d: find the second job in it", of, s[of], what, most)
		}
	}
}

func TestLinesFitOnAScreen(t *testing.T) {
	t.Parallel()
	files(t, []string{".go", ".sql", ".md"}, func(path string, text []byte) {
		for n, line := range bytes.Split(text, []byte("\n")) {
			if columns(line) > mostColumns && !mayBeLong(path, line) {
				t.Errorf("%s:%d has more than %d columns", path, n+1, mostColumns)
			}
		}
	})
}

func columns(line []byte) int {
	return utf8.RuneCount(line) + (columnsOfTab-1)*bytes.Count(line, []byte("\t"))
}

// mayBeLong reports whether a line of a page is a row of a table, or has an address; such lines cannot be broken.
func mayBeLong(path string, line []byte) bool {
	return filepath.Ext(path) == ".md" && (bytes.HasPrefix(line, []byte("|")) || bytes.Contains(line, []byte("](")))
}
