package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// One command opens the shop, sells and closes it. Its counts are tested in internal/test/demo/trade.
func TestDemo(t *testing.T) {
	t.Parallel()
	dsn := pgdev.Database(t)
	s := runWith(t.Context(), "demo", "--database", dsn, "--orders", "20", "--rate", "20", "--pay-within", "1s")
	if s.code != exitDone || s.err != "" {
		t.Fatalf("%+v", s)
	}
	says(t, s.out, "Look at it in a browser: http://127.0.0.1:", "orders=20 wrong=0", "The history of order 7:")
	for wrong, reason := range map[string]string{"demo --orders 0": "--orders 0: want 1 or more",
		"demo --world nowhere": "nowhere", "demo now": "unknown command", "demo --pages 0.0.0.0:0": "loopback",
		"demo --world shop --pages :7433": "loopback", "demo --pages nowhere": "loopback"} {
		s := runWith(t.Context(), strings.Fields(wrong)...)
		if s.code != exitUsage || !strings.Contains(s.err, reason) {
			t.Errorf("edda %s: %+v", wrong, s)
		}
	}
	if s := runWith(t.Context(), "demo", "--pages", "127.0.0.1", "--database", dsn); s.code != exitFailed {
		t.Errorf("pages at no address: %+v", s)
	}
}

// The pages of a world stay until the command ends.
func TestDemoOfAWorld(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	dsn := pgdev.Database(t)
	printed, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"demo", "--world", "paused", "--database", dsn},
			streams{out: out, err: io.Discard})
		_ = out.Close()
	}()
	at := ""
	for lines := bufio.NewScanner(printed); at == "" && lines.Scan(); {
		_, at, _ = strings.Cut(lines.Text(), "in a browser: ")
	}
	response, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", at, response.Status)
	}
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "site.example:7433" // points to this machine
	if response, err = http.DefaultClient.Do(rebound); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a request that names another host: %s", response.Status)
	}
	stop()
	if got := <-code; got != exitDone {
		t.Errorf("exit code %d after Ctrl-C", got)
	}
}

// The program that the command writes is tested in cmd/edda/internal/scaffold.
func TestNew(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "shop")
	s := runWith(t.Context(), "new", folder, "--replace", "../..", "--module", "example.com/coffee")
	want := folder + " has a program about orders to start from. To run it: cd " + folder +
		" && go mod tidy && go run .\n"
	if s.code != exitDone || s.out != want || s.err != "" {
		t.Fatalf("%+v", s)
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(mod), "module example.com/coffee\n", "replace github.com/edda-go/edda => ")
	for wrong, reason := range map[string]string{
		"new " + folder + " --replace ../..":                    "is not empty",
		"new " + folder + "/log --replace ../..":                "package log belongs to Go",
		"new " + folder + "/other --replace " + folder:          "is not the source of Edda",
		"new " + folder + "/other":                              "give that folder with --replace",
		"new":                                                   "accepts 1 arg(s), received 0",
		"new " + folder + "/other --replace ../.. --module a:b": "want letters, digits",
	} {
		s := runWith(t.Context(), strings.Fields(wrong)...)
		if s.code == exitDone || !strings.Contains(s.err, reason) {
			t.Errorf("edda %s: %+v, want %q", wrong, s, reason)
		}
	}
	s = runWith(t.Context(), "new", filepath.Join(folder, "two"), "--replace", "../..", "--json")
	says(t, s.out, `"folder": "`+folder+`/two"`, `"main_test.go"`)
}
