package pgdev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAvailableMemoryIsReadOrZero(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"MemTotal: 9 kB\nMemAvailable:   24000000 kB\n": 24000000 << 10,
		"MemTotal: 9 kB\n":           0,
		"MemAvailable: many kB\n":    0,
		"MemAvailable: 1000 pages\n": 0,
	} {
		file := filepath.Join(t.TempDir(), "meminfo")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := availableMemory(file); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	if got := availableMemory(filepath.Join(t.TempDir(), "none")); got != 0 {
		t.Errorf("no file: %d bytes, want 0", got)
	}
}

func TestOnlyServersThatMayLoseTheirDataAreInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "")
	memory, roomy := memoryDir()
	durable := place(t, true)
	if passing := place(t, false); strings.HasPrefix(passing, memoryMount+"/") != roomy ||
		strings.HasPrefix(durable, memoryMount+"/") {
		t.Errorf("a server lies in %s, a durable one in %s, and room in %s: %v", passing, durable, memory, roomy)
	}
	t.Setenv("TMPDIR", "/var/tmp")
	if chosen := place(t, false); !strings.HasPrefix(chosen, "/var/tmp/") {
		t.Errorf("TMPDIR is /var/tmp, and a server lies in %s", chosen)
	}
}

// place returns the parent directory of a new home.
func place(t *testing.T, durable bool) string {
	t.Helper()
	h, err := newHome(durable)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	return h.dir
}

func TestHomeBaseIsShortAndOpen(t *testing.T) {
	t.Parallel()
	closed, long := t.TempDir(), "/"+strings.Repeat("a", socketPathMax)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bases     []string
		otherUser bool
		want      string
	}{
		{[]string{long, closed, "/tmp"}, true, "/tmp"},
		{[]string{"/var/tmp", "/tmp"}, false, "/var/tmp"},
		{[]string{long}, false, ""},
	} {
		base, err := homeBase(c.bases, c.otherUser)
		if base != c.want || (err == nil) != (c.want != "") {
			t.Errorf("of %v: %q, %v; want %q", c.bases, base, err, c.want)
		}
	}
}
