package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const edda = "github.com/edda-go/edda"

// part is something of Edda that a program links, or that people run, and the folder of its module.
type part struct{ name, in, packages string }

// parts are all parts, those first that most programs link.
var parts = []part{
	{"bus", ".", "./bus"},
	{"scheduler", ".", "./scheduler"},
	{"eddaui", ".", "./eddaui"},
	{"migrations", ".", "./migrations"},
	{"eddaprom", ".", "./eddaprom"},
	{"eddafx", ".", "./eddafx"},
	{"watermill", ".", "./bus/watermill/... ./scheduler/remote"},
	{"eddaotel", "eddaotel", "."},
	{"jetstream", "bus/watermill/jetstream", "."},
	{"sagatest, eddatest", ".", "./sagatest ./eddatest"},
	{"command edda", ".", "./cmd/edda"},
}

// systems are the systems that releases are built for. The linked modules differ between them.
var systems = []string{"linux", "darwin", "windows"}

// module is a dependency.
type module struct {
	path, dir string
	licence   string
	parts     []string
}

// survey returns the modules that the parts link, by path, and their licences.
func survey() ([]*module, error) {
	found := map[string]*module{}
	for _, p := range parts {
		for _, system := range systems {
			if err := p.survey(system, found); err != nil {
				return nil, err
			}
		}
	}
	all := []*module{}
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return cmp.Compare(a.path, b.path) })
	var faults error
	for _, m := range all {
		licence, err := classify(m.dir)
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s: %w", m.path, err))
		}
		m.licence = licence
	}
	return all, faults
}

// survey adds the modules that a part links on a system.
func (p part) survey(system string, found map[string]*module) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Module"},
		strings.Fields(p.packages)...)...)
	list.Dir = filepath.Join(root, p.in)
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	var complaint bytes.Buffer
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list of %s: %w: %s", p.name, err, complaint.String())
	}
	for stream := json.NewDecoder(bytes.NewReader(out)); ; {
		var pack struct {
			ImportPath string
			Module     *struct{ Path, Dir string }
		}
		if err := stream.Decode(&pack); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if pack.Module == nil || pack.Module.Path == edda || strings.HasPrefix(pack.Module.Path, edda+"/") {
			continue
		}
		m := found[pack.Module.Path]
		if m == nil {
			m = &module{path: pack.Module.Path, dir: pack.Module.Dir}
			found[m.path] = m
		}
		if !slices.Contains(m.parts, p.name) {
			m.parts = append(m.parts, p.name)
		}
	}
}
