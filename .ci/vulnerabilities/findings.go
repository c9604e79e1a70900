package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// findings are the vulnerabilities that are called: the sentences of each, by its id.
type findings struct{ ofModules, ofGo map[string]string }

// read reads the stream of JSON that govulncheck writes.
func read(in io.Reader) (findings, error) {
	found := findings{map[string]string{}, map[string]string{}}
	summary := map[string]string{}
	for stream := json.NewDecoder(in); ; {
		var m struct {
			OSV     *struct{ ID, Summary string }
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Version, Package, Function string }
			}
		}
		if err := stream.Decode(&m); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return found, fmt.Errorf("read the findings of govulncheck: %w", err)
		}
		if m.OSV != nil {
			summary[m.OSV.ID] = m.OSV.Summary
		}
		f := m.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" { // it is required, and not called
			continue
		}
		at := f.Trace[0]
		into := found.ofModules
		if at.Module == "stdlib" {
			into = found.ofGo
		}
		into[f.OSV] = fmt.Sprintf("%s: %s: %s@%s, mended in %s", f.OSV, summary[f.OSV], at.Package, at.Version,
			f.FixedVersion)
	}
}

func (f findings) String() string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(f.ofModules)) {
		fmt.Fprintf(&text, "called: %s\n", f.ofModules[id])
	}
	for _, id := range slices.Sorted(maps.Keys(f.ofGo)) {
		fmt.Fprintf(&text, "build with a newer Go: %s\n", f.ofGo[id])
	}
	fmt.Fprintf(&text, "%d vulnerabilities of dependencies, %d of this Go\n", len(f.ofModules), len(f.ofGo))
	return text.String()
}
