package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
)

// The page lists the modules that are linked now, and all their licences are allowed.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	modules, err := survey()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := pageOf(modules); string(have) != want {
		t.Errorf("%s is not current: run make licences. It should be\n%s", page, want)
	}
}

// A program with a bus links exactly the modules that arch_test.go pins.
func TestBusLinksWhatIsPinned(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "internal", "test", "house", "arch_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, pinned, _ := strings.Cut(string(text), "var pinned = []string{")
	pinned, _, _ = strings.Cut(pinned, "\n}")
	modules, err := survey()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m.parts[0] == "bus" && !strings.Contains(pinned, `"`+m.path+`"`) {
			t.Errorf("a program with a bus links %s", m.path)
		}
	}
}

// A licence with terms for a program's code, a text that is not a licence, and a missing text are refused.
func TestOtherLicencesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want error
	}{
		"GPL":     {"GPL-3.0", errRefuse},
		"AGPL":    {"AGPL-3.0", errRefuse},
		"LGPL":    {"LGPL-2.1", errRefuse},
		"MPL":     {"MPL-2.0", errRefuse},
		"nothing": {"", errNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.file != "" {
				text, err := assets.ReadLicenseFile("License/" + c.file + "/license.txt")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "COPYING"), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := classify(dir); !errors.Is(err, c.want) {
				t.Errorf("%s is %q, %v", c.file, got, err)
			}
		})
	}
	known, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": string(known), "LICENSE.enterprise": "Whoever runs this owes us a share of the profit.",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := classify(dir); !errors.Is(err, errRefuse) || !strings.Contains(err.Error(), "LICENSE.enterprise") {
		t.Errorf("a text that nobody knows beside a licence is %q, %v", got, err)
	}
	if got, err := classify(root); err != nil || got != "Apache-2.0" {
		t.Errorf("Edda's own licence is %q, %v", got, err)
	}
}
