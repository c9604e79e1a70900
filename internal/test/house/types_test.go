package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// typed is a package of the product with its types, tests left out.
type typed struct {
	files []*ast.File
	info  *types.Info
	types *types.Package
}

// productTypes are all packages of the product, by name. They are read once.
var productTypes = sync.OnceValues(func() (map[string]*typed, error) {
	packages, err := listed()
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})
	found := map[string]*typed{}
	for _, p := range packages {
		name, ours := short(p.ImportPath)
		if !ours || len(p.GoFiles) == 0 || under(testTools, name) {
			continue
		}
		t := &typed{info: &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}}
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(set, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			t.files = append(t.files, parsed)
		}
		config := types.Config{Importer: from}
		if t.types, err = config.Check(p.ImportPath, set, t.files, t.info); err != nil {
			return nil, err
		}
		found[name] = t
	}
	return found, nil
})

func typesOf(t *testing.T) map[string]*typed {
	t.Helper()
	all, err := productTypes()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isInternal reports whether only packages of the module may import the package.
func isInternal(name string) bool { return slices.Contains(strings.Split(name, "/"), "internal") }

// isDoor reports whether users of the module import the package.
func isDoor(name string) bool {
	return !isInternal(name) && !under([]string{"cmd", "examples"}, name)
}

// assignments are the assignments to fields of structs of a different package, by the assigning package. They may
// only become fewer, to 0.
var assignments = map[string]int{
	"bus":                       15,
	"internal/base/wire":        26,
	"internal/engine/batch":     3,
	"internal/engine/message":   19,
	"internal/engine/outcome":   7,
	"internal/engine/dispatch":  1,
	"internal/engine/handlers":  4,
	"internal/engine/leased":    3,
	"internal/engine/repair":    7,
	"internal/store/deadletter": 37,
	"internal/store/settings":   2,
	"memory":                    22,
	"outbox":                    30,
	"persistence":               15,
	"recoverability":            1,
}

// Only the package of a struct changes its fields, so that one package shows every possible state of the struct. The
// test counts assignments in the packages that a message crosses.
func TestFieldsAreAssignedAtHome(t *testing.T) {
	t.Parallel()
	crossed := []string{"internal/engine", "internal/store", "internal/base", "bus", "outbox", "memory", "persistence",
		"recoverability", "saga", "event"}
	for name, p := range typesOf(t) {
		if !under(crossed, name) || under([]string{"bus/watermill"}, name) {
			continue
		}
		n := 0
		for _, file := range p.files {
			ast.Inspect(file, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.AssignStmt:
					for _, to := range node.Lhs {
						n += p.foreign(to)
					}
				case *ast.IncDecStmt:
					n += p.foreign(node.X)
				}
				return true
			})
		}
		if n > assignments[name] {
			t.Errorf("%s assigns %d times to fields of structs of other packages, the limit is %d", name, n,
				assignments[name])
		}
	}
}

// foreign returns 1 if the expression is a field of a struct of a different package of the module.
func (p *typed) foreign(e ast.Expr) int {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return 0
	}
	selection := p.info.Selections[selector]
	if selection == nil || selection.Kind() != types.FieldVal {
		return 0
	}
	of := selection.Obj().Pkg()
	if _, ours := short(of.Path()); !ours || of.Path() == p.types.Path() {
		return 0
	}
	return 1
}

// The doors: packages that users import, the names that these export, and the exported functions, methods and fields
// whose types are internal. They may only become fewer.
const (
	mostDoors     = 24
	mostDoorNames = 1167
	mostShown     = 26
)

func TestDoorsAreFew(t *testing.T) {
	t.Parallel()
	var doors, shown []string
	names := 0
	counted := packs(t)
	for _, name := range slices.Sorted(maps.Keys(typesOf(t))) {
		if !isDoor(name) {
			continue
		}
		doors = append(doors, name)
		dir := name
		if dir == "" {
			dir = "."
		}
		names += len(counted[dir].names)
		shown = append(shown, typesOf(t)[name].shows()...)
	}
	t.Logf("%d doors, %d names, %d show internal types", len(doors), names, len(shown))
	if len(doors) > mostDoors || names > mostDoorNames || len(shown) > mostShown {
		t.Errorf("%d public packages, %d exported names, %d with internal types; the limits are %d, %d, %d:\n%s",
			len(doors), names, len(shown), mostDoors, mostDoorNames, mostShown, strings.Join(shown, "\n"))
	}
}

// shows lists the exported names of the package whose signatures have a type of an internal package.
func (p *typed) shows() (shown []string) {
	for _, line := range p.api() {
		if strings.Contains(line, "/internal/") {
			shown = append(shown, line)
		}
	}
	return shown
}

// api returns a line for each exported name of the package: types, their exported fields and methods, functions,
// constants and variables.
func (p *typed) api() (lines []string) {
	qualify := func(of *types.Package) string {
		if of == p.types {
			return ""
		}
		if name, ours := short(of.Path()); ours && isInternal(name) {
			return module + "/" + name // so that shows finds it
		}
		return of.Name()
	}
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if !object.Exported() {
			continue
		}
		named, isType := object.(*types.TypeName)
		if !isType || named.IsAlias() {
			lines = append(lines, types.ObjectString(object, qualify))
			continue
		}
		lines = append(lines, typeLines(named, qualify)...)
	}
	return lines
}

func typeLines(named *types.TypeName, qualify types.Qualifier) (lines []string) {
	kind := "type " + named.Name()
	switch of := named.Type().Underlying().(type) {
	case *types.Struct:
		lines = append(lines, kind+" struct")
		for field := range of.Fields() {
			if field.Exported() {
				lines = append(lines, fmt.Sprintf("%s.%s %s", named.Name(), field.Name(),
					types.TypeString(field.Type(), qualify)))
			}
		}
	case *types.Interface:
		lines = append(lines, kind+" interface")
		for method := range of.ExplicitMethods() {
			if method.Exported() {
				lines = append(lines, fmt.Sprintf("%s.%s%s", named.Name(), method.Name(),
					strings.TrimPrefix(types.TypeString(method.Type(), qualify), "func")))
			}
		}
	default:
		lines = append(lines, kind+" "+types.TypeString(of, qualify))
	}
	of := named.Type().(*types.Named)
	for method := range of.Methods() {
		if method.Exported() {
			lines = append(lines, fmt.Sprintf("(%s) %s%s", named.Name(), method.Name(),
				strings.TrimPrefix(types.TypeString(method.Type(), qualify), "func")))
		}
	}
	return lines
}

const apiFile = "internal/test/house/testdata/api.golden"

// The public names are recorded in a file, so that none is added by accident: EDDA_API=write go test -run
// TestPublicNames ./internal/test/house writes the file.
func TestPublicNames(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	all := typesOf(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !isDoor(name) {
			continue
		}
		fmt.Fprintf(&text, "package %s\n", all[name].types.Path())
		for _, line := range all[name].api() {
			fmt.Fprintf(&text, "\t%s\n", line)
		}
	}
	if os.Getenv("EDDA_API") == "write" {
		if err := os.WriteFile(apiFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences(string(want), text.String()) {
		t.Errorf("%s: %s", apiFile, difference)
	}
}

// differences returns the lines that are in only one of two texts, by package.
func differences(want, got string) (all []string) {
	were, are := placed(want), placed(got)
	for line := range are {
		if !were[line] {
			all = append(all, "it lacks "+line)
		}
	}
	for line := range were {
		if !are[line] {
			all = append(all, "it has in excess "+line)
		}
	}
	slices.Sort(all)
	return all
}

func placed(text string) map[string]bool {
	lines, in := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "package "); ok {
			in = strings.TrimSpace(name)
			continue
		}
		lines[in+": "+strings.TrimSpace(line)] = true
	}
	return lines
}
