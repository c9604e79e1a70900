package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

const root, list = "../..", "golang.org/x/vulndb"

// modules are the modules that users link or run, as in ../licences. Each has requirements of its own.
var modules = []string{".", "eddaotel", "bus/watermill/jetstream"}

func main() {
	newest := flag.Bool("newest", false, "take the newest list, and not that of go.mod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *newest); err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

var errCalled = errors.New("Edda calls something that is vulnerable")

func run(ctx context.Context, newest bool) error {
	dir, err := os.MkdirTemp("", "vulnerabilities")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	version, err := index(ctx, dir, newest)
	if err != nil {
		return err
	}
	fmt.Printf("list %s\n", version)
	called := false
	for _, module := range modules {
		found, err := look(ctx, module, dir)
		if err != nil {
			return fmt.Errorf("module %s: %w", module, err)
		}
		fmt.Printf("module %s:\n%s", module, found)
		called = called || len(found.ofModules) > 0
	}
	if called {
		return errCalled
	}
	return nil
}

// look returns the vulnerabilities that a module of Edda calls, by the list in a folder.
func look(ctx context.Context, module, list string) (findings, error) {
	out, err := command(ctx, root, "go", "tool", "-modfile=.ci/vulnerabilities/go.mod", "govulncheck", "-format=json",
		"-db=file://"+filepath.ToSlash(list), "-C="+module, "./...")
	if err != nil {
		return findings{}, err
	}
	return read(bytes.NewReader(out))
}

// index writes the list of vulnerabilities as govulncheck reads it, and returns its version.
func index(ctx context.Context, dir string, newest bool) (version string, err error) {
	module := list
	if newest {
		module += "@latest"
	}
	out, err := command(ctx, ".", "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var at struct{ Version, Dir string }
	if err := json.Unmarshal(out, &at); err != nil {
		return "", err
	}
	_, err = command(ctx, ".", "go", "tool", "indexdb", "-vulns", filepath.Join(at.Dir, "data", "osv"), "-out", dir)
	return at.Version, err
}

func command(ctx context.Context, dir, name string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir = dir
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", c, err, complaint.String())
	}
	return out, nil
}
