package release

import (
	"cmp"
	"context"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

//go:embed releases.txt
var table string

// Default is the major version to download if any will do.
const Default = 17

// within bounds a download, of 20 to 60 MB.
const within = 15 * time.Minute

// most bounds the bytes of an archive.
const most = 128 << 20

// Store is a directory of releases and their source.
type Store struct {
	Dir      string // holds a directory for each release
	Registry string // an address such as https://registry.npmjs.org
	System   string // such as linux-x64; see ThisSystem

	releases string // in place of releases.txt, for tests
}

// release is a line of releases.txt.
type release struct{ system, version, sum string }

// ErrNone means that there is no release of this version for this system.
var ErrNone = errors.New("there is no release to download")

// ThisSystem returns the system of this process in the terms of releases.txt, or "" if there are no builds for it.
func ThisSystem() string {
	processor, known := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if !known || runtime.GOOS == "linux" && !hasGlibc() {
		return ""
	}
	return runtime.GOOS + "-" + processor
}

// hasGlibc reports whether programs that need the C library of GNU can run here. They cannot on Alpine.
func hasGlibc() bool {
	for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if _, err := os.Stat(loader); err == nil {
			return true
		}
	}
	return false
}

func (s Store) of(major int) (release, error) {
	for line := range strings.Lines(cmp.Or(s.releases, table)) {
		f := strings.Fields(line)
		if r := (release{f[0], f[1], f[2]}); r.system == s.System && r.major() == major {
			return r, nil
		}
	}
	return release{}, fmt.Errorf("PostgreSQL %d for %s/%s: %w", major, runtime.GOOS, runtime.GOARCH, ErrNone)
}

func (r release) major() int {
	text, _, _ := strings.Cut(r.version, ".")
	major, _ := strconv.Atoi(text) // the table is ours
	return major
}

// postgres returns the version of the server. The registry requires a third number, and the package appends the
// number of its build: 17.10 is in 17.10.0-beta.17.
func (r release) postgres() string {
	text, _, _ := strings.Cut(r.version, "-")
	return strings.TrimSuffix(text, ".0")
}

// Find returns the directory of initdb and postgres, if the release of this major version has been downloaded.
func (s Store) Find(major int) (bin string, ok bool) {
	r, err := s.of(major)
	if err != nil {
		return "", false
	}
	bin = filepath.Join(s.Dir, r.version, "bin")
	_, err = os.Stat(filepath.Join(bin, "initdb"))
	return bin, err == nil
}

// Tidy removes the remains of processes that were killed while they downloaded. The caller makes sure that no process
// is downloading now.
func (s Store) Tidy() {
	left, _ := filepath.Glob(filepath.Join(s.Dir, scratchPattern)) // the only error is a malformed pattern
	for _, dir := range left {
		_ = os.RemoveAll(dir) // it takes space, and does no other harm
	}
}

const scratchPattern = "download-*"

// Get downloads the release of this major version, writing its steps to log, and returns the directory of initdb and
// postgres. It returns ErrNone if there is no release for this system. Two processes that call it at the same time
// both download.
func (s Store) Get(ctx context.Context, log io.Writer, major int) (bin string, err error) {
	r, err := s.of(major)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	scratch, err := os.MkdirTemp(s.Dir, scratchPattern)
	if err != nil {
		return "", fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	archive, err := os.Create(filepath.Join(scratch, "archive"))
	if err != nil {
		return "", err
	}
	defer archive.Close()
	address := s.address(r)
	fmt.Fprintf(log, "PostgreSQL is not installed. Downloading the release %s of PostgreSQL, in the package %s, into "+
		"%s\n", r.postgres(), r.version, s.Dir)
	if err := fetch(ctx, log, address, r.sum, archive); err != nil {
		return "", fmt.Errorf("download %s: %w", address, err)
	}
	unpacked := filepath.Join(scratch, "unpacked")
	if err := unpack(archive, unpacked); err != nil {
		return "", fmt.Errorf("unpack %s: %w", address, err)
	}
	return s.place(unpacked, r)
}

func (s Store) address(r release) string {
	registry := strings.TrimSuffix(s.Registry, "/")
	return fmt.Sprintf("%s/@embedded-postgres/%s/-/%[2]s-%[3]s.tgz", registry, r.system, r.version)
}

// place gives an unpacked release its name, unless a different process was first.
func (s Store) place(unpacked string, r release) (string, error) {
	final := filepath.Join(s.Dir, r.version)
	if err := os.Rename(unpacked, final); err != nil {
		if bin, ok := s.Find(r.major()); ok {
			return bin, nil
		}
		return "", fmt.Errorf("put PostgreSQL into its place: %w", err)
	}
	return filepath.Join(final, "bin"), nil
}

// fetch writes the data at an address into a file, and fails unless its checksum is sum.
func fetch(ctx context.Context, log io.Writer, address, sum string, into io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the registry answers %s", answer.Status)
	}
	fmt.Fprintf(log, "%s: %d MB\n", address, answer.ContentLength>>20)
	hash := sha512.New()
	if _, err := io.Copy(io.MultiWriter(into, hash), io.LimitReader(answer.Body, most)); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("its checksum is %s, want %s: the registry has other bytes than this version of Edda knows",
			got, sum)
	}
	return nil
}
