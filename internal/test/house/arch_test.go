package house

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

const (
	module      = "github.com/edda-go/edda"
	thisPackage = "internal/test/house"
)

// wings are the wings of the architecture, the upper one first. A package may import packages of its own wing and of
// the wings below it. A package belongs to the longest name that is a prefix of its path.
var wings = [][]string{
	{"cmd", "examples"},
	{"eddadev", "eddatest", "internal/ui/host"},                           // kits
	{"eddafx", "eddaprom", "eddaui", "bus/watermill", "scheduler/remote"}, // bridges
	{"internal/ui"},
	{"bus", "scheduler", "operate", "outbox", "limit", "memory", "sagatest", // faces
		"history/whereabouts", "migrations", "internal/engine/timetable"},
	{"internal/engine"},
	{"internal/store", "persistence", "history"},
	{"internal/base"},
	{"saga", "recoverability", "event", "internal/base/fields", "internal/base/secret"}, // pure
}

// faces is the wing of the root package, whose path is a prefix of every other.
const faces = 4

// testTools are for tests, benchmarks and demos. They may import every package. Only the packages of testedWith may
// import them.
var testTools = []string{"internal/test", "bench"}

// testedWith lists the packages of the product that import a test tool.
var testedWith = map[string][]string{
	"eddadev":  {"internal/test/pgdev"}, // a private Postgres
	"eddatest": {"internal/test/pgdev"},
	"cmd/edda": {"internal/test/demo", "internal/test/demo/pages", "internal/test/demo/trade",
		"internal/test/demo/world"}, // edda demo
}

// pinned lists all modules that a program with sagas and a bus links beyond the standard library.
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

// standardOnly are the packages that a handler's author must be able to test without other modules. A policy may come
// from package backoff, which links the standard library only.
var standardOnly = []string{"saga", "recoverability", "sagatest", "internal/base/secret", "internal/base/fields"}

const backOff = "github.com/cenkalti/backoff/v4"

type goPackage struct {
	ImportPath, Dir string
	Export          string // the file with its compiled types
	Standard        bool
	Module          *struct{ Path string }
	GoFiles         []string
	Imports         []string
	Deps            []string
}

// listed returns our packages and all packages they link, by import path. It is read once: go list takes a moment.
var listed = sync.OnceValues(func() (map[string]goPackage, error) {
	var complaint bytes.Buffer
	list := exec.Command("go", "list", "-e", "-deps", "-export",
		"-json=ImportPath,Dir,Export,Standard,Module,GoFiles,Imports,Deps", "./...")
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

// short returns the path within our module; ok is false for all other packages.
func short(path string) (name string, ok bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// under reports whether name is in packages, or inside any of them.
func under(packages []string, name string) bool {
	return slices.ContainsFunc(packages, func(p string) bool {
		return name == p || p != "" && strings.HasPrefix(name, p+"/")
	})
}

// wingOf returns the number of the wing of a package, or -1.
func wingOf(name string) int {
	if name == "" {
		return faces
	}
	wing, longest := -1, ""
	for n, names := range wings {
		for _, of := range names {
			if len(of) > len(longest) && under([]string{of}, name) {
				wing, longest = n, of
			}
		}
	}
	return wing
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name, ours := short(p.ImportPath)
		if !ours || under(testTools, name) {
			continue
		}
		wing := wingOf(name)
		if wing < 0 {
			t.Errorf("package %s has no place in the table of wings", p.ImportPath)
		}
		for _, path := range p.Imports {
			imported, ours := short(path)
			switch {
			case !ours:
			case under(testTools, imported):
				if !slices.Contains(testedWith[name], imported) {
					t.Errorf("%s imports %s, which is for tests only", p.ImportPath, path)
				}
			case wingOf(imported) < wing:
				t.Errorf("%s imports %s, which stands in a wing above it", p.ImportPath, path)
			}
		}
	}
}

// Anyone may copy an example: it uses only public packages. That includes tests, and examples that are modules of
// their own.
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

// A connection outside of a pool must be opened by pg.Dial; otherwise the hooks of the pool are lost, which may fetch
// a password, or set a role.
func TestConnectionsAreOpenedInOnePlace(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name, ours := short(p.ImportPath)
		if !ours || name == "internal/base/pg" || under(testTools, name) ||
			under([]string{"examples", "eddadev", "eddatest"}, name) { // a user's program has no hooks but its own
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
