package pgdev

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev/release"
)

func TestWithoutPostgresTheErrorListsTheRemedies(t *testing.T) {
	t.Parallel()
	_, err := places{path: t.TempDir(), globs: []string{filepath.Join(t.TempDir(), "*", "bin")}}.binaries(t.Context(),
		t.Output(), anyVersion)
	if err == nil {
		t.Fatal("binaries were found in an empty place")
	}
	for _, remedy := range []string{"DATABASE_URL", "apt-get install postgresql", "brew install postgresql", "PATH"} {
		if !strings.Contains(err.Error(), remedy) {
			t.Errorf("the error does not name the remedy %s:\n%v", remedy, err)
		}
	}
}

func TestFindPrefersThePathThenTheNewestVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"lib/9/bin", "lib/15/bin", "lib/17/bin", "mine"} {
		install(t, filepath.Join(root, dir), "initdb", "postgres")
	}
	install(t, filepath.Join(root, "lib/18/bin"), "initdb") // a broken installation
	install(t, filepath.Join(root, "client"), "psql")
	p := places{path: filepath.Join(root, "client"), globs: []string{filepath.Join(root, "lib/*/bin")}}
	expect := func(want string) {
		t.Helper()
		if got, ok := p.find(anyVersion); !ok || got != resolved(t, filepath.Join(root, want)) {
			t.Errorf("path %s: found %q, want %s", p.path, got, want)
		}
	}
	expect("lib/17/bin")

	linked := filepath.Join(root, "linked")
	if err := os.Mkdir(linked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "mine", "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}
	p.path += string(filepath.ListSeparator) + linked
	expect("mine")
}

func TestRootOnDebianInstallsAndSaysSo(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	bin := filepath.Join(root, "lib/16/bin")
	calls := filepath.Join(root, "calls")
	aptGet := filepath.Join(root, "apt-get")
	script := "#!/bin/sh\necho \"$DEBIAN_FRONTEND $*\" >>" + calls + "\nmkdir -p " + bin +
		"\nfor name in initdb postgres; do : >" + bin + "/$name; chmod +x " + bin + "/$name; done\n"
	if err := os.WriteFile(aptGet, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	got, err := places{globs: []string{filepath.Join(root, "lib/*/bin")}, aptGet: aptGet,
		lock: filepath.Join(root, "lock")}.binaries(t.Context(), &log, anyVersion)
	if err != nil || got != bin {
		t.Errorf("binaries: %q, %v; want %s", got, err, bin)
	}
	if !strings.Contains(log.String(), "apt-get install") {
		t.Errorf("it did not say what it does: %q", log.String())
	}
	called, err := os.ReadFile(calls)
	want := "noninteractive update\nnoninteractive install -y --no-install-recommends postgresql\n"
	if err != nil || string(called) != want {
		t.Errorf("apt-get was called with\n%s(%v), want\n%s", called, err, want)
	}
}

func TestAFailedInstallationShowsWhatAptGetSaidAndTheRemedies(t *testing.T) {
	t.Parallel()
	aptGet := filepath.Join(t.TempDir(), "apt-get")
	if err := os.WriteFile(aptGet, []byte("#!/bin/sh\necho no network today >&2; exit 100\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := places{aptGet: aptGet, lock: aptGet + ".lock"}.binaries(t.Context(), t.Output(), anyVersion)
	if err == nil || !strings.Contains(err.Error(), "no network today") ||
		!strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("the error hides the reason or the remedies: %v", err)
	}
}

func TestFindAsksTheServersForTheirVersion(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	for _, major := range []string{"15", "17"} {
		dir := filepath.Join(root, "lib", major, "bin")
		install(t, dir, "initdb")
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + major + ".2 (Debian 99)'\n"
		if err := os.WriteFile(filepath.Join(dir, "postgres"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := places{path: filepath.Join(root, "lib/17/bin"), globs: []string{filepath.Join(root, "lib/*/bin")}}
	if got, ok := p.find(15); !ok || got != filepath.Join(root, "lib/15/bin") {
		t.Errorf("PostgreSQL 15 is in %q, %t", got, ok)
	}
	if got, ok := p.find(16); ok {
		t.Errorf("PostgreSQL 16 is in %q, and there is none", got)
	}
}

// A directory in /var/tmp may be a trap of another user.
func TestADirectoryThatOthersMayWriteToGetsNoDownload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // such a directory is refused
		t.Fatal(err)
	}
	p := places{downloads: release.Store{Dir: dir, System: "linux-x64"}}
	planted := filepath.Join(dir, "17.10.0-beta.17", "bin")
	install(t, planted, "initdb", "postgres")
	if _, ok := (release.Store{Dir: dir, System: "linux-x64"}).Find(release.Default); !ok {
		t.Fatal("the trap is none: its version is another one")
	}
	if found, ok := p.find(anyVersion); ok {
		t.Errorf("found in %s, where others may write", found)
	}
	if _, err := p.binaries(t.Context(), t.Output(), anyVersion); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a download into %s: %v", dir, err)
	}
}

func TestADownloadCanBeRefused(t *testing.T) {
	t.Setenv(DownloadVariable, "off")
	_, err := places{downloads: release.Store{Dir: t.TempDir()}}.binaries(t.Context(), t.Output(), anyVersion)
	if !errors.Is(err, errNoDownload) {
		t.Errorf("a download that was refused: %v", err)
	}
}

// install writes empty programs of these names into dir.
func install(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
