package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// names holds the exported names of the project's packages, by the name of the package.
type names map[string]exported

// exported are the names of one package: Endpoint, and Endpoint.Run.
type exported struct {
	path   string // in the repository
	nested bool   // a module of its own, with versions of its own
	names  map[string]bool
}

// readNames reads the exported names of all packages that others may import. A name that two packages share is in
// neither.
func readNames(files fs.FS) names {
	found, twice, nested := names{}, map[string]bool{}, map[string]bool{}
	_ = fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // no link leads to a file that cannot be read
		}
		dir := path.Dir(file)
		switch {
		case entry.IsDir() && (hidden(file) || unimportable(path.Base(file))):
			return fs.SkipDir
		case path.Base(file) == "go.mod" && dir != ".":
			nested[dir] = true
		case path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go"):
			found.add(files, file, twice)
		}
		return nil
	})
	for name := range twice {
		delete(found, name)
	}
	for name, p := range found {
		for dir := range nested {
			if p.path == dir || strings.HasPrefix(p.path, dir+"/") {
				p.nested = true
				found[name] = p
			}
		}
	}
	return found
}

func hidden(dir string) bool { return dir != "." && strings.HasPrefix(path.Base(dir), ".") }

func unimportable(name string) bool {
	switch name {
	case "internal", "testdata", "examples", "docs", "bench", "browser", "node_modules":
		return true
	}
	return false
}

// add adds the names that a file exports.
func (n names) add(files fs.FS, file string, twice map[string]bool) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil || tree.Name.Name == "main" {
		return
	}
	dir, name := path.Dir(file), tree.Name.Name
	p, known := n[name]
	if known && p.path != dir {
		twice[name] = true
		return
	}
	if !known {
		p = exported{path: dir, names: map[string]bool{}}
		n[name] = p
	}
	for _, d := range tree.Decls {
		p.declare(d)
	}
}

func (e exported) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		e.names[name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				e.names[spec.Name.Name] = true
				e.members(spec)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					e.names[name.Name] = true
				}
			}
		}
	}
}

// members are the fields of a struct and the methods of an interface.
func (e exported) members(spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			e.names[spec.Name.Name+"."+name.Name] = true
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// qualified is a name as pages write it, perhaps with the arguments of a call behind it.
var qualified = regexp.MustCompile(`^([a-z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)(?:\[.*\])?(?:\(.*\)|\{.*\})?$`)

// address is where the documentation of a name is, "" if there is no such name.
func (n names) address(span, version string) string {
	m := qualified.FindStringSubmatch(span)
	if m == nil || !n[m[1]].names[m[2]] {
		return ""
	}
	p := n[m[1]]
	if p.nested {
		version = ""
	}
	dir := ""
	if p.path != "." {
		dir = "/" + p.path
	}
	return godoc + module + version + dir + "#" + m[2]
}
