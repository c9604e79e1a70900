package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	guestsPage    = "docs/internals/lifecycle.md"
	guestsHeading = "\n## Code of the program that Edda calls\n"
)

// The table of docs/internals/lifecycle.md lists each function, codec, logger or other value with methods that a
// program can pass to Edda, with the failures that its caller survives. The table has no other rows.
func TestLifecyclePageNamesEveryFunctionOfTheUsers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(guestsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), guestsHeading)
	var listed []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("%s does not say who calls %s and what the caller survives", guestsPage, cells[1])
		}
		for n, name := range strings.Split(cells[1], "`") {
			if n%2 == 1 {
				listed = append(listed, name)
			}
		}
	}
	given := guestsGiven(t)
	for _, name := range given {
		if !slices.Contains(listed, name) {
			t.Errorf("a program can give %s, and %s does not say how its calls are guarded", name, guestsPage)
		}
	}
	for _, name := range listed {
		if !slices.Contains(given, name) {
			t.Errorf("%s has %s, which no program can give", guestsPage, name)
		}
	}
}

// guestsGiven returns the exported fields and the parameters of exported functions, in packages that a program may
// import, whose type is a function or an interface: "bus.Options.Around", "bus.NewRelay(forward)".
func guestsGiven(t *testing.T) (all []string) {
	t.Helper()
	files, named := map[string][]*ast.File{}, map[string]bool{"slog.Logger": true}
	aliases := map[string]ast.Expr{}
	sources(t, func(name string, text []byte) {
		if isTest(name) || !isProduct(name) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path.Dir(name)] = append(files[path.Dir(name)], file)
		eachType(file, func(spec *ast.TypeSpec) {
			switch of := spec.Type.(type) {
			case *ast.SelectorExpr: // an alias of a function of a package below, or of a type without program code
				aliases[file.Name.Name+"."+spec.Name.Name] = of
			case *ast.FuncType:
				named[file.Name.Name+"."+spec.Name.Name] = true
			case *ast.InterfaceType:
				named[file.Name.Name+"."+spec.Name.Name] = isForPrograms(spec.Name.Name, of)
			}
		})
	})
	for name, of := range aliases {
		named[name] = isGuest("", of, named)
	}
	for dir, of := range files {
		if strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		for _, file := range of {
			all = append(all, guestsIn(file, named)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isForPrograms reports whether a program may implement an interface: not if a method is not exported, nor if the
// interface belongs to a database or to Edda's own types. The methods of a saga.Message are called by its codec.
func isForPrograms(name string, of *ast.InterfaceType) bool {
	ours := []string{"Beginner", "DB", "Execer", "InstanceReader", "Message", "Patcher", "Process", "Querier",
		"Queryer", "Resender", "Sender", "Term", "Transactor"}
	if slices.Contains(ours, name) {
		return false
	}
	return !slices.ContainsFunc(of.Methods.List, func(m *ast.Field) bool {
		return len(m.Names) > 0 && !m.Names[0].IsExported()
	})
}

// isProduct reports whether a program may link the package of a file.
func isProduct(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	tools := []string{"bench", "cmd", "docs", "eddadev", "eddaotel", "eddaprom", "eddatest", "examples", "sagatest"}
	return !slices.Contains(tools, first) && !strings.HasPrefix(name, "eddaui/browser/")
}

func eachType(file *ast.File, f func(*ast.TypeSpec)) {
	for _, decl := range file.Decls {
		if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, spec := range g.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					f(s)
				}
			}
		}
	}
}

func guestsIn(file *ast.File, named map[string]bool) (all []string) {
	pkg := file.Name.Name
	addTo := func(named map[string]bool, prefix, suffix string, fields *ast.FieldList, exportedOnly bool) {
		for _, field := range fields.List {
			if !isGuest(pkg, field.Type, named) {
				continue
			}
			for _, name := range field.Names {
				if name.IsExported() || !exportedOnly {
					all = append(all, prefix+name.Name+suffix)
				}
			}
		}
	}
	eachType(file, func(spec *ast.TypeSpec) {
		if s, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
			addTo(named, pkg+"."+spec.Name.Name+".", "", s.Fields, true)
		}
	})
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() && isOpen(f) {
			named := maps.Clone(named)
			if f.Type.TypeParams != nil {
				for _, p := range f.Type.TypeParams.List {
					for _, name := range p.Names {
						named[pkg+"."+name.Name] = hasFunc(p.Type)
					}
				}
			}
			addTo(named, pkg+"."+methodName(f)+"(", ")", f.Type.Params, false)
		}
	}
	return all
}

// hasFunc reports whether the constraint of a type parameter allows a function.
func hasFunc(constraint ast.Expr) (has bool) {
	ast.Inspect(constraint, func(n ast.Node) bool {
		_, is := n.(*ast.FuncType)
		has = has || is
		return !has
	})
	return has
}

// isOpen reports whether a function is no method of an unexported type.
func isOpen(f *ast.FuncDecl) bool { return f.Recv == nil || ast.IsExported(receiverOf(f)) }

func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.IndexListExpr:
			of = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

func methodName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return receiverOf(f) + "." + f.Name.Name
}

// isGuest reports whether a value of a type has code of the program.
func isGuest(pkg string, of ast.Expr, named map[string]bool) bool {
	switch e := of.(type) {
	case *ast.FuncType, *ast.InterfaceType:
		return true
	case *ast.StarExpr:
		return isGuest(pkg, e.X, named)
	case *ast.Ellipsis:
		return isGuest(pkg, e.Elt, named)
	case *ast.ArrayType:
		return isGuest(pkg, e.Elt, named)
	case *ast.IndexExpr:
		return isGuest(pkg, e.X, named)
	case *ast.Ident:
		return named[pkg+"."+e.Name]
	case *ast.SelectorExpr:
		x, _ := e.X.(*ast.Ident)
		return x != nil && named[x.Name+"."+e.Sel.Name]
	}
	return false
}
