package main

import (
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

// onVariable names the mutant that is on in a process of a woven engine. Without it the engine is unchanged.
const onVariable = "EDDA_MUTANT"

// woven is the engine with many mutants in it, each behind a condition, so that it compiles once for all of them. A
// function that mutants change begins with a copy of its body for each of them. A variable with an embedded file is
// initialised with the text of the mutant that is on.
type woven struct {
	root    string
	files   map[string]*goFile // the files that were read, by path
	added   map[string]*added  // additions to packages, by directory
	mutants map[string]bool    // the mutants that are in it, by name
}

// goFile is a file of Go, and the texts that are inserted into it.
type goFile struct {
	path, text string
	file       *ast.File
	functions  []bodied        // functions outside of other functions
	rest       string          // the text without bodies and imports
	qualifiers map[string]bool // names before a dot
	inserted   map[int]string  // by offset
}

// bodied is a function with a body.
type bodied struct {
	head *ast.FuncType
	body *ast.BlockStmt
}

// added is an addition to a package.
type added struct {
	pkg       string
	variables map[string]string // values of variables with embedded files, by name
	texts     string            // cases, one for each mutant of an embedded file
}

// weave puts mutants into the engine, except mutants that change more than bodies of functions, imports and embedded
// files.
func weave(root string, mutants []mutant) (*woven, error) {
	w := &woven{root: root, files: map[string]*goFile{}, added: map[string]*added{}, mutants: map[string]bool{}}
	for _, m := range mutants {
		texts, err := m.files(root)
		if err != nil {
			return nil, err
		}
		all := true
		for name, text := range texts {
			put := w.code
			if path.Ext(name) != ".go" {
				put = w.embedded
			}
			in, err := put(m, name, text)
			if err != nil {
				return nil, err
			}
			all = all && in
		}
		if all {
			w.mutants[m.name] = true
		}
	}
	return w, nil
}

func (w *woven) open(name string) (*goFile, error) {
	if f := w.files[name]; f != nil {
		return f, nil
	}
	text, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	f, err := parseGo(name, string(text))
	w.files[name] = f
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
	f := &goFile{path: name, text: text, file: file, qualifiers: map[string]bool{}, inserted: map[int]string{}}
	rest, end := "", 0
	leave := func(n ast.Node) {
		rest += text[end:f.at(n.Pos())]
		end = f.at(n.End())
	}
	within := token.NoPos // the end of a function
	ast.Inspect(file, func(n ast.Node) bool {
		var found bodied
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.IMPORT {
				leave(n)
			}
		case *ast.FuncDecl:
			found = bodied{n.Type, n.Body}
		case *ast.FuncLit:
			found = bodied{n.Type, n.Body}
		case *ast.SelectorExpr:
			if name, ok := n.X.(*ast.Ident); ok {
				f.qualifiers[name.Name] = true
			}
		}
		if found.body != nil && found.body.Pos() > within {
			f.functions, within = append(f.functions, found), found.body.End()
			leave(found.body)
		}
		return true
	})
	f.rest = strings.Join(strings.Fields(rest+text[end:]), " ")
	return f, nil
}

func (f *goFile) at(pos token.Pos) int { return int(pos - f.file.FileStart) }

func (f *goFile) of(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

func (f *goFile) imports(spec string) bool {
	return slices.ContainsFunc(f.file.Imports, func(s *ast.ImportSpec) bool { return f.of(s) == spec })
}

// code puts the bodies that a mutant changes into their functions. It reports false if the mutant changes more.
func (w *woven) code(m mutant, name, text string) (bool, error) {
	f, err := w.open(name)
	if err != nil {
		return false, err
	}
	now, err := parseGo(name, text)
	if err != nil || strings.HasSuffix(name, "_test.go") || f.rest != now.rest || now.recovers(f) {
		return false, nil
	}
	for _, spec := range now.file.Imports {
		in, known := packageName(spec), f.imports(now.of(spec))
		if !now.qualifiers[in] && (f.qualifiers[in] || !known) {
			return false, nil // only the mutant imports a package that it does not use
		}
		at, also := f.at(f.file.Name.End()), "; import "+now.of(spec)
		if !known && !strings.Contains(f.inserted[at]+";", also+";") {
			f.inserted[at] += also
		}
	}
	w.addedTo(f)
	for n, changed := range now.functions {
		if body := f.functions[n].body; now.of(changed.body) != f.of(body) {
			f.inserted[f.at(body.Lbrace)+1] += now.branch(m.name, changed)
		}
	}
	return true, nil
}

// recovers reports whether a function that changes calls recover itself, which works only in a deferred function.
func (f *goFile) recovers(original *goFile) (found bool) {
	for n, changed := range f.functions {
		if f.of(changed.body) == original.of(original.functions[n].body) {
			continue
		}
		ast.Inspect(changed.body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			found = found || ok && f.of(call.Fun) == "recover"
			_, inner := n.(*ast.FuncLit)
			return !inner
		})
	}
	return found
}

// branch returns the statement that runs the body of a mutant. The body is that of a function in the function, so
// that it has names and labels of its own, and the compiler checks it like a function.
func (f *goFile) branch(mutant string, changed bodied) string {
	var parameters, arguments []string
	for _, field := range changed.head.Params.List {
		dots := ""
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			dots = "..."
		}
		for _, name := range field.Names {
			if name.Name != "_" {
				parameters = append(parameters, name.Name+" "+f.of(field.Type))
				arguments = append(arguments, name.Name+dots)
			}
		}
	}
	results, before, after := "", "", "; return"
	if changed.head.Results != nil {
		results, before, after = f.of(changed.head.Results), "return ", ""
	}
	return fmt.Sprintf(" if eddaMutant == %q { %sfunc(%s) %s %s%s(%s)%s }; ", mutant, before,
		strings.Join(parameters, ", "), results, f.line(lineRoot+mutant, f.at(changed.body.Lbrace)), f.of(changed.body),
		strings.Join(arguments, ", "), after)
}

// lineRoot begins the path that the compiler reports of a line in the body of a mutant. The mutant's name follows.
const lineRoot = "/edda-mutant/"

// line makes the compiler report the following text as the text at an offset, in the file below a directory.
func (f *goFile) line(below string, at int) string {
	before := f.text[:at]
	return fmt.Sprintf("/*line %s:%d:%d*/", path.Join(below, f.path), 1+strings.Count(before, "\n"),
		at-strings.LastIndex(before, "\n"))
}

// embedded replaces the text of a file that is embedded in a package by the mutant's. It reports false for a file
// that is not the only one of a variable's pattern, or in no package above it.
func (w *woven) embedded(m mutant, name, _ string) (bool, error) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		files, err := filepath.Glob(filepath.Join(w.root, dir, "*.go"))
		if err != nil {
			return false, err
		}
		for _, place := range files {
			f, err := w.open(path.Join(dir, filepath.Base(place)))
			if err != nil {
				return false, err
			}
			if variable := f.embeds(strings.TrimPrefix(name, dir+"/")); variable != nil {
				w.embed(f, variable, m, name)
				return true, nil
			}
		}
		if dir == "." {
			return false, nil
		}
	}
}

// embeds returns the variable in which a file is embedded, or nil.
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
	a, original := w.addedTo(f), variable.Names[0].Name
	a.variables[original] = fmt.Sprintf("eddaText(%q, %sEddaEmbedded)", path.Base(name), original)
	if f.of(variable.Type) == "embed.FS" {
		a.variables[original] = "eddaFiles{" + original + "EddaEmbedded}"
	}
	f.inserted[f.at(variable.Names[0].End())] = "EddaEmbedded"
	a.texts += fmt.Sprintf("\tcase %q:\n", m.name+" "+path.Base(name))
	for _, h := range m.hunks {
		if h.file == name {
			a.texts += fmt.Sprintf("\t\ttext = eddaReplaced(text, %q, %q)\n", h.old, h.now)
		}
	}
}

// overlay returns the texts of all changed and additional files, by path.
func (w *woven) overlay() map[string]string {
	texts := map[string]string{}
	for name, f := range w.files {
		text, end := "", 0
		for _, at := range slices.Sorted(maps.Keys(f.inserted)) {
			text += f.text[end:at] + f.inserted[at] + f.line(w.root, at)
			end = at
		}
		if end > 0 {
			texts[name] = text + f.text[end:]
		}
	}
	for dir, a := range w.added {
		text := fmt.Sprintf(addition, a.pkg, onVariable, a.texts)
		for _, name := range slices.Sorted(maps.Keys(a.variables)) {
			text += "\nvar " + name + " = " + a.variables[name] + "\n"
		}
		texts[path.Join(dir, "edda_mutants.go")] = text
	}
	return texts
}

// addition is the file that is added to a package.
const addition = `package %s

import (
	"embed"
	"os"
	"path"
	"strings"
)

var eddaMutant = os.Getenv(%q)

type eddaFiles struct{ embed.FS }

func (f eddaFiles) ReadFile(name string) ([]byte, error) {
	text, err := f.FS.ReadFile(name)
	return []byte(eddaText(path.Base(name), string(text))), err
}

func eddaReplaced(text, old, now string) string {
	return strings.Replace("\n"+text, "\n"+old, "\n"+now, 1)[1:]
}

func eddaText(name, text string) string {
	switch eddaMutant + " " + name {
%s	}
	return text
}
`
