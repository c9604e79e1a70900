package edda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/edda-go/edda"

// layers are the lines of the house, from the ground up. A package may import what stands on a lower line,
// never its brothers on the same one. A package that does not exist yet costs nothing.
var layers = [][]string{
	{"internal/option", "internal/fields", "internal/secret", "eddaui/internal/words", "eddaui/internal/graph"},
	{"saga", "recoverability", "internal/pgerr", "internal/plan"},
	{"event", "internal/pg", "internal/report", "internal/run", "internal/wire", "internal/wake"},
	{"audit"},
	{"persistence", "recoverability/deadletter", "internal/dedup", "internal/lease", "internal/limit", "internal/queue",
		"internal/counters", "internal/pin", "internal/ring", "history",
		"migrations"},
	{"migrations/migrate", "internal/settings"},
	{"internal/handlers", "internal/recall", "internal/presence", "internal/runs", "internal/trouble",
		"internal/hooks"},
	{"internal/delivery"},
	{"internal/step", "internal/aftercommit", "internal/historian"},
	{"outbox", "internal/batch", "internal/leased", "internal/partition", "internal/firing", "internal/watch"},
	{"history/whereabouts", "operate/flow", "operate/slots", "operate/vitals", "operate/instances",
		"operate/messages", "operate/partitions"},
	{"bus", "limit", "operate", "operate/bulk", "scheduler"},
	{"bus/watermill", "scheduler/remote", "internal/timetable", "internal/view"},
	{"eddaui/internal/act", "internal/advice"},
	{"", "eddaui/internal/page", "eddaui/internal/live"},
	{"sagatest", "scheduler/schedulertest", "eddafx", "eddaprom", "bus/watermill/eddacqrs",
		"scheduler/remote/broker", "memory", "eddaui"},
	{"internal/uihost"},
	{"eddadev", "eddatest"},
	{"examples", "internal/scaffold"},
	{"cmd"},
}

// exceptions are imports between brothers that are meant.
var exceptions = map[string][]string{
	"recoverability": {"saga"},                        // a policy judges a failure, whose message is a saga.Info
	"internal/wake":  {"internal/pg", "internal/run"}, // it waits, and notifies
	// edda demo
	"cmd/edda":         {"internal/demo", "internal/demo/pages", "internal/demo/trade", "internal/demo/world"},
	"examples/order":   {"examples/order/shop"},     // internal/demo/trade runs the shop too
	"examples/scatter": {"examples/scatter/gather"}, // bench/scatter imports the sagas too
}

// testTools are for tests, benchmarks and demos: nothing a user links may import them, and they may import
// anything.
var testTools = []string{"internal/bouncer", "internal/failover", "internal/pgdev", "internal/pg/pgtest",
	"internal/chaos", "internal/demo", "internal/procs", "internal/mutants", "internal/pages", "bench"}

// demos start a Postgres of their own, as tests do: no program in production links them.
var demos = []string{"eddadev", "eddatest"}

// pinned is all that a program with sagas and a bus links beyond the standard library.
var pinned = []string{
	"github.com/jackc/pgx/v5",
	"github.com/jackc/pgpassfile",
	"github.com/jackc/pgservicefile",
	"github.com/jackc/puddle/v2",
	"github.com/google/uuid",
	"github.com/cenkalti/backoff/v4",
	"golang.org/x/text", // pgx: SASLprep of passwords
	"golang.org/x/sync", // puddle: a semaphore
}

// standardOnly are the packages that a handler's author must be able to test without anything else. A policy may be one
// of backoff, which links the standard library only.
var standardOnly = []string{"saga", "recoverability", "sagatest", "internal/secret", "internal/fields"}

const backOff = "github.com/cenkalti/backoff/v4"

type goPackage struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct{ Path string }
	GoFiles         []string
	Imports         []string
	Deps            []string
}

// listed are our packages and all they link, by import path. It is read once: go list takes a moment.
var listed = sync.OnceValues(func() (map[string]goPackage, error) {
	var complaint bytes.Buffer
	list := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Module,GoFiles,Imports,Deps",
		"./...")
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(complaint.String()))
	}
	packages := map[string]goPackage{}
	for stream := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := stream.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
})

func list(t *testing.T) map[string]goPackage {
	t.Helper()
	packages, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// short is the path within our module; ok is false for all other packages.
func short(path string) (name string, ok bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// under reports whether name is one of the packages, or inside one.
func under(packages []string, name string) bool {
	return slices.ContainsFunc(packages, func(p string) bool {
		return name == p || p != "" && strings.HasPrefix(name, p+"/")
	})
}

func layerOf(name string) int {
	exact := slices.IndexFunc(layers, func(line []string) bool { return slices.Contains(line, name) })
	if exact >= 0 {
		return exact
	}
	return slices.IndexFunc(layers, func(line []string) bool { return under(line, name) })
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name, ours := short(p.ImportPath)
		if !ours || under(testTools, name) {
			continue
		}
		if layerOf(name) < 0 {
			t.Errorf("package %s has no place in the table of layers", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			imported, ours := short(path)
			if !ours || slices.Contains(exceptions[name], imported) {
				continue
			}
			switch {
			case under(testTools, imported):
				if !under(demos, name) {
					t.Errorf("%s imports %s, which is for tests only", p.ImportPath, path)
				}
			case layerOf(imported) == layerOf(name):
				t.Errorf("%s imports its brother %s: let it declare an interface of one method instead", p.ImportPath,
					path)
			case layerOf(imported) > layerOf(name):
				t.Errorf("%s imports %s, which stands above it", p.ImportPath, path)
			}
		}
	}
}

// Somebody may copy an example: nothing in it is out of reach. The tests count, and so do the examples that are modules
// of their own.
func TestExamplesUseWhatIsPublic(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("examples", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" {
			return err
		}
		seen++
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if name, ours := short(path); ours && slices.Contains(strings.Split(name, "/"), "internal") {
				t.Errorf("%s imports %s, which nobody outside may", file, path)
			}
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("%d files were read, %v", seen, err)
	}
}

func TestUsersLinkLittle(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, root := range []string{"", "/saga", "/bus", "/recoverability", "/persistence"} {
		for _, dep := range packages[module+root].Deps {
			p := packages[dep]
			if p.Standard || p.Module == nil || p.Module.Path == module {
				continue
			}
			if !slices.Contains(pinned, p.Module.Path) {
				t.Errorf("package edda%s links %s: nothing but the standard library and %s", root, dep,
					strings.Join(pinned, ", "))
			}
		}
	}
}

func TestPurePackagesUseTheStandardLibrary(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, root := range standardOnly {
		for _, dep := range packages[module+"/"+root].Deps {
			name, ours := short(dep)
			if ours && !under(standardOnly, name) || !ours && !packages[dep].Standard && dep != backOff {
				t.Errorf("package %s links %s: the standard library and %s only", root, dep, backOff)
			}
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if _, ours := short(p.ImportPath); !ours || len(p.GoFiles) == 0 {
			continue
		}
		doc, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil || !strings.Contains("\n"+string(doc), "\n// Package ") &&
			!strings.Contains("\n"+string(doc), "\n// Command ") {
			t.Errorf("%s has no doc.go with a package comment: its promise, its states, its failures", p.ImportPath)
		}
	}
}

// A connection beside a pool is opened by pg.Dial, or the hooks of the pool are forgotten: those that get a password,
// or set a role.
func TestConnectionsAreOpenedInOnePlace(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name, ours := short(p.ImportPath)
		if !ours || name == "internal/pg" || under(testTools, name) || under(demos, name) ||
			under([]string{"examples"}, name) { // a user's program has no hooks but its own
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"pgx.Connect", "pgconn.Connect("} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s/%s calls %s: let it call pg.Dial", name, file, call)
				}
			}
		}
	}
}
