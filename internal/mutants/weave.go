package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// onVariable names the mutant that is on in a process of a woven engine. Without it the engine is as it is.
const onVariable = "EDDA_MUTANT"

// woven is the engine with many mutants in it, each behind a condition, so that it compiles once for all of them. A
// function that mutants change begins with a copy of its body for each of them. A variable with an embedded file is
// initialised with the text of the mutant that is on.
type woven struct {
	root    string
	files   map[string]*goFile // by path, those that change
	added   map[string]*added  // by directory: the file that comes to a package
	mutants map[string]bool    // by name, those that are in it
}

// goFile is a file of Go and its changes.
type goFile struct {
	path, text string
	file       *ast.File
	functions  []bodied        // those that stand in no other
	rest       string          // the text without bodies and imports
	imports    []string        // the specifications
	qualifiers map[string]bool // the names that stand before a dot
	edits      []edit
}

// bodied is a function with a body.
type bodied struct {
	head *ast.FuncType
	body *ast.BlockStmt
}

// edit replaces a part of a text.
type edit struct {
	from, to int
	now      string
}

// added is what a package needs in addition.
type added struct {
	pkg       string
	variables map[string]string // the values of those with embedded files, by name
	texts     strings.Builder   // cases, one for each mutant of an embedded file
}

// weave puts mutants into the engine. It leaves those out whose change is not one of bodies of functions, of imports,
// or of embedded files.
func weave(root string, mutants []mutant) (*woven, error) {
	w := &woven{root: root, files: map[string]*goFile{}, added: map[string]*added{}, mutants: map[string]bool{}}
	for _, m := range mutants {
		texts, err := m.files(root)
		if err != nil {
			return nil, err
		}
		var changes []func()
		for name, text := range texts {
			var change func()
			if path.Ext(name) == ".go" {
				change, err = w.code(m.name, name, text)
			} else {
				change, err = w.embedded(m, name)
			}
			if err != nil {
				break
			}
			changes = append(changes, change)
		}
		if err != nil {
			continue
		}
		for _, change := range changes {
			change()
		}
		w.mutants[m.name] = true
	}
	return w, nil
}

// errAlone is why a mutant is not woven.
var errAlone = errors.New("it has to be compiled by itself")

func (w *woven) open(name string) (*goFile, error) {
	if f := w.files[name]; f != nil {
		return f, nil
	}
	text, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	f, err := parseGo(name, string(text))
	if err == nil {
		w.files[name] = f
	}
	return f, err
}

func (w *woven) addedTo(f *goFile) *added {
	dir := path.Dir(f.path)
	if w.added[dir] == nil {
		w.added[dir] = &added{pkg: f.file.Name.Name, variables: map[string]string{}}
	}
	return w.added[dir]
}

func parseGo(name, text string) (*goFile, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &goFile{path: name, text: text, file: file, qualifiers: map[string]bool{}}
	var rest strings.Builder
	end := 0
	leave := func(n ast.Node) {
		rest.WriteString(text[end:f.at(n.Pos())])
		end = f.at(n.End())
	}
	add := func(head *ast.FuncType, body *ast.BlockStmt) {
		f.functions = append(f.functions, bodied{head, body})
		leave(body)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.IMPORT {
				leave(n)
			}
		case *ast.FuncDecl:
			if n.Body != nil {
				add(n.Type, n.Body)
			}
			return false
		case *ast.FuncLit:
			add(n.Type, n.Body)
			return false
		}
		return true
	})
	f.rest = strings.Join(strings.Fields(rest.String()+text[end:]), " ")
	for _, spec := range file.Imports {
		f.imports = append(f.imports, f.of(spec))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				f.qualifiers[name.Name] = true
			}
		}
		return true
	})
	return f, nil
}

func (f *goFile) at(pos token.Pos) int { return int(pos - f.file.FileStart) }
func (f *goFile) of(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

// code returns how to put the bodies into the file that a mutant changes.
func (w *woven) code(mutant, name, text string) (func(), error) {
	f, err := w.open(name)
	if err != nil {
		return nil, err
	}
	now, err := parseGo(name, text)
	if err != nil || strings.HasSuffix(name, "_test.go") || f.rest != now.rest || now.importsUnused(f) {
		return nil, errAlone
	}
	var edits []edit
	for n, changed := range now.functions {
		body := f.functions[n].body
		if now.of(changed.body) == f.of(body) {
			continue
		}
		if recovers(changed.body) {
			return nil, errAlone
		}
		at := f.at(body.Lbrace) + 1
		edits = append(edits, edit{at, at, now.branch(mutant, changed)})
	}
	for n, spec := range now.imports {
		if !slices.Contains(f.imports, spec) && !slices.Contains(now.imports[:n], spec) {
			at := f.at(f.file.Name.End())
			edits = append(edits, edit{at, at, "; import " + spec})
		}
	}
	return func() {
		w.addedTo(f)
		for _, e := range edits {
			if !slices.Contains(f.edits, e) { // an import that several mutants need
				f.edits = append(f.edits, e)
			}
		}
	}, nil
}

// imports of a package that the mutant alone does not use would keep it from being compiled.
func (f *goFile) importsUnused(original *goFile) bool {
	return slices.ContainsFunc(f.file.Imports, func(spec *ast.ImportSpec) bool {
		name := packageName(spec)
		return !f.qualifiers[name] && (original.qualifiers[name] || !slices.Contains(original.imports, f.of(spec)))
	})
}

// recovers reports whether a function calls recover itself, which works only in a function that is deferred.
func recovers(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

// branch is the statement that runs the body of a mutant. The body is one of a function in it, so that its names and
// labels are its own, and what the compiler asks of a function it asks of it. The compiler reports faults in it at a
// place below lineRoot, named after the mutant.
func (f *goFile) branch(mutant string, changed bodied) string {
	var parameters, arguments []string
	for _, field := range changed.head.Params.List {
		for _, name := range field.Names {
			if name.Name == "_" {
				continue
			}
			parameters = append(parameters, name.Name+" "+f.of(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				arguments = append(arguments, name.Name+"...")
			} else {
				arguments = append(arguments, name.Name)
			}
		}
	}
	results, before, after := "", "", "; return"
	if changed.head.Results != nil {
		results, before, after = f.of(changed.head.Results), "return ", ""
	}
	return fmt.Sprintf(" if eddaMutant == %q { %sfunc(%s) %s %s%s(%s)%s }; ", mutant, before,
		strings.Join(parameters, ", "), results, f.line(lineRoot+mutant, changed.body.Lbrace), f.of(changed.body),
		strings.Join(arguments, ", "), after)
}

// lineRoot begins the path that the compiler gives of a line in the body of a mutant.
const lineRoot = "/edda-mutant/"

// line makes the compiler take the text that follows for the text at a position, of the file below a directory.
func (f *goFile) line(below string, pos token.Pos) string {
	before := f.text[:f.at(pos)]
	return fmt.Sprintf("/*line %s:%d:%d*/", path.Join(below, f.path), 1+strings.Count(before, "\n"),
		len(before)-strings.LastIndex(before, "\n"))
}

// embedded returns how to make the text of a file that is embedded in a package the one of a mutant.
func (w *woven) embedded(m mutant, name string) (func(), error) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		files, err := filepath.Glob(filepath.Join(w.root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, place := range files {
			f, err := w.open(path.Join(dir, filepath.Base(place)))
			if err != nil {
				return nil, err
			}
			if variable := f.embeds(strings.TrimPrefix(name, dir+"/")); variable != nil {
				return func() { w.embed(f, variable, m, name) }, nil
			}
		}
		if dir == "." {
			return nil, errAlone
		}
	}
}

// embeds returns the variable in which a file is embedded, nil if there is none.
func (f *goFile) embeds(name string) *ast.ValueSpec {
	for _, decl := range f.file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Doc == nil || g.Tok != token.VAR || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, comment := range g.Doc.List {
			pattern, is := strings.CutPrefix(comment.Text, "//go:embed ")
			if matches, err := path.Match(pattern, name); is && matches && err == nil {
				return g.Specs[0].(*ast.ValueSpec)
			}
		}
	}
	return nil
}

func (w *woven) embed(f *goFile, variable *ast.ValueSpec, m mutant, name string) {
	a := w.addedTo(f)
	original := variable.Names[0]
	if a.variables[original.Name] == "" {
		a.variables[original.Name] = fmt.Sprintf("eddaText(%q, %sEddaEmbedded)", path.Base(name), original.Name)
		if f.of(variable.Type) == "embed.FS" {
			a.variables[original.Name] = "eddaFiles{" + original.Name + "EddaEmbedded}"
		}
		f.edits = append(f.edits, edit{f.at(original.End()), f.at(original.End()), "EddaEmbedded"})
	}
	_, _ = fmt.Fprintf(&a.texts, "\tcase %q:\n", m.name+" "+path.Base(name))
	for _, h := range m.hunks {
		if h.file == name {
			_, _ = fmt.Fprintf(&a.texts, "\ttext = strings.Replace(\"\\n\"+text, %q, %q, 1)[1:]\n", "\n"+h.old,
				"\n"+h.now)
		}
	}
}

// overlay returns the texts of all files that change or come in addition, by path.
func (w *woven) overlay() map[string]string {
	texts := map[string]string{}
	for name, f := range w.files {
		if len(f.edits) > 0 {
			texts[name] = f.edited(w.root)
		}
	}
	for dir, a := range w.added {
		texts[path.Join(dir, "edda_mutants.go")] = a.file()
	}
	return texts
}

// edited returns the text with all edits. Between those of a function, lines count as in the original.
func (f *goFile) edited(root string) string {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	end := 0
	for n, e := range f.edits {
		b.WriteString(f.text[end:e.from] + e.now)
		end = e.to
		if n+1 == len(f.edits) || f.edits[n+1].from > e.from {
			b.WriteString(f.line(root, f.file.FileStart+token.Pos(e.to)))
		}
	}
	return b.String() + f.text[end:]
}

// file returns the text of the file that comes to a package.
func (a *added) file() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "package %s\n\nimport \"os\"\n\nvar eddaMutant = os.Getenv(%q)\n", a.pkg, onVariable)
	if len(a.variables) == 0 {
		return b.String()
	}
	text := strings.Replace(b.String(), "\"os\"", "(\n\"embed\"\n\"os\"\n\"path\"\n\"strings\"\n)", 1)
	text += "\ntype eddaFiles struct{ embed.FS }\n\nfunc (f eddaFiles) ReadFile(name string) ([]byte, error) {\n" +
		"\ttext, err := f.FS.ReadFile(name)\n\treturn []byte(eddaText(path.Base(name), string(text))), err\n}\n"
	for _, name := range slices.Sorted(maps.Keys(a.variables)) {
		text += "\nvar " + name + " = " + a.variables[name] + "\n"
	}
	return text + "\nfunc eddaText(name, text string) string {\n\tswitch eddaMutant + \" \" + name {\n" +
		a.texts.String() + "\t}\n\treturn text\n}\n"
}
