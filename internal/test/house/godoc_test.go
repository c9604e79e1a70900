package house

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// verbs are functions and methods, in addition to constructors, that pkg.go.dev has to show in use, by package. A
// type stands for an option of it.
var verbs = map[string][]string{
	".": {"Host_Health"},
	"bus": {"Handle", "HandleTx", "HandleRaw", "Use", "KeyedBy", "Accept", "Bus_SendTx", "Bus_InTx", "Bus_Watch",
		"EndpointOptions"},
	"saga": {"Define", "Handles", "OnReply", "OnTimeout", "IfMissingDo", "Upcast", "Context_Timeout",
		"Context_CancelTimeout", "StatesOf"},
	"scheduler": {"Store_Pause", "Store_Retry", "Store_Trigger", "Cron", "Every", "Once"},
	"operate": {"Endpoints_Pause", "Limits_Set", "Messages_Cancel", "Operator_History", "WithActor",
		"Instances_Repair", "DeadLetters_NewJob", "DeadLetters_Retry"},
	"sagatest":            {"Transcript"},
	"limit":               {"Limiter_Do"},
	"history/whereabouts": {"Reader_Timeline"},
	"operate/vitals":      {"Watch"},
	"migrations":          {"Up"},
	"eddafx":              {"Module"},
	"eddatest":            {"Pool"},
	"eddadev":             {"Run"},
}

// withoutExample are constructors that no program calls, or that an example cannot call, with the reason.
var withoutExample = map[string]string{
	"bus/watermill/jetstream NewPublisher":  "it needs a NATS server: its example is compiled",
	"bus/watermill/jetstream NewSubscriber": "it needs a NATS server: its example is compiled",

	"history New":             "it takes a type of internal/base/pg: an operator has History",
	"history/whereabouts New": "it takes a type of internal/base/pg: an operator has History",
	"outbox New":              "it takes a type of internal/base/pg: an operator has Outbox",
	"outbox NewBorder":        "it takes what a bus is made of",
	"outbox NewRelay":         "programs call bus.NewRelay",
	"persistence New":         "it takes a type of internal/base/pg: programs reach instances by a bus",
}

// declared has the exported functions and methods of a package, and its types, in the notation of their examples.
type declared struct {
	names    map[string]bool
	examples map[string]bool // examples with an output, which therefore run
}

// documented returns the packages that users import.
func documented(t *testing.T) map[string]*declared {
	t.Helper()
	found := map[string]*declared{}
	sources(t, func(name string, text []byte) {
		dir := path.Dir(name)
		if !isDocumented(dir) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if found[dir] == nil {
			found[dir] = &declared{names: map[string]bool{}, examples: map[string]bool{}}
		}
		found[dir].add(file, isTest(name))
	})
	return found
}

func isDocumented(dir string) bool {
	parts := strings.Split(dir, "/")
	return !slices.Contains(parts, "internal") && !slices.Contains([]string{"bench", "cmd", "examples"}, parts[0])
}

func (d *declared) add(file *ast.File, test bool) {
	if test {
		for _, e := range doc.Examples(file) {
			if e.Output != "" {
				d.examples[e.Name] = true
			}
		}
		return
	}
	for _, one := range file.Decls {
		switch one := one.(type) {
		case *ast.FuncDecl:
			d.addFunction(one)
		case *ast.GenDecl:
			for _, spec := range one.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					d.names[spec.Name.Name] = true
				}
			}
		}
	}
}

func (d *declared) addFunction(f *ast.FuncDecl) {
	if f.Recv == nil {
		d.names[f.Name.Name] = true
		return
	}
	d.names[typeName(f.Recv.List[0].Type)+"_"+f.Name.Name] = true
}

// shown reports whether name has an example: its own, or one with a suffix.
func (d *declared) shown(name string) bool {
	for example := range d.examples {
		suffix, ok := strings.CutPrefix(example, name+"_")
		if example == name || ok && suffix != "" && !ast.IsExported(suffix) {
			return true
		}
	}
	return false
}

// wanted returns the names of a package that need an example.
func (d *declared) wanted(dir string) []string {
	names := slices.Clone(verbs[dir])
	for name := range d.names {
		if strings.HasPrefix(name, "New") && !strings.Contains(name, "_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pkg.go.dev shows for each constructor and handler how it is used, in code that runs.
func TestConstructorsAndVerbsHaveExamples(t *testing.T) {
	t.Parallel()
	packages := documented(t)
	unused := maps.Clone(withoutExample)
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		for _, name := range p.wanted(dir) {
			_, excused := withoutExample[dir+" "+name]
			switch {
			case !p.names[name]:
				t.Errorf("package %s has no %s: take it out of the table", dir, name)
			case p.shown(name) && !excused:
			case !p.shown(name) && excused:
				delete(unused, dir+" "+name)
			case !excused:
				t.Errorf("package %s has no Example%s with an output", dir, name)
			}
		}
	}
	for what := range unused {
		t.Errorf("%s is no exception: it has an example, or is not there", what)
	}
	for dir := range verbs {
		if packages[dir] == nil {
			t.Errorf("there is no package %s", dir)
		}
	}
}

// withoutUse are packages whose doc begins without code: their parts are used through other packages.
var withoutUse = []string{"event", "migrations"}

// A package doc has, after the first sentence about the package, its use in a few lines of code.
func TestPackageDocsBeginWithTheirUse(t *testing.T) {
	t.Parallel()
	sources(t, func(name string, text []byte) {
		dir := path.Dir(name)
		if path.Base(name) != "doc.go" || !isDocumented(dir) || slices.Contains(withoutUse, dir) {
			return
		}
		head, _, _ := strings.Cut(string(text), "\n// # ")
		if !strings.Contains(head, "\n//\t") {
			t.Errorf("%s has no lines of code before its first heading", name)
		}
	})
}
