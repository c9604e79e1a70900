package browser

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// A program needs only the lines in the guide to have the pages: it is a module of its own, and one process.
func TestProgramsHaveTheirPages(t *testing.T) {
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	program := exec.Command(buildModule(t, embedding(t)))
	program.Env = append(os.Environ(), "DATABASE_URL="+server.DSN())
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it has not told its address: %v", err)
	}
	s := &shop{t: t, url: strings.TrimSpace(url)}
	if page := s.read(""); !strings.Contains(page, "<h1>Now</h1>") {
		t.Fatalf("the first page is %s", page)
	}
	v := newVisitor(t, s, desk)
	v.open("")
	v.until("the stream is open", `document.getElementById("link").textContent === "live"`)
	v.contains("#e-orders", "orders", "running")
	v.click("nav", "Sagas")
	v.head("Sagas")
	v.within(soon, "the order is there", `document.getElementById("living").textContent.includes("2026-0001")`)
	v.click("living", "2026-0001")
	v.head("2026-0001")
	v.contains("#timeline", "order.place", "v1", "Placed")
	if children := childrenOf(t, program.Process.Pid); children != "" {
		t.Errorf("the program has started other processes: %s", children)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("it has ended with a page open: %v", err)
	}
}

// embedding returns a program with the lines of the guide.
func embedding(t *testing.T) string {
	t.Helper()
	guide, program := readFile(t, "../../docs/guide/ui.md"), readFile(t, "testdata/embedding.go.txt")
	_, lines, found := strings.Cut(guide, "## In your program\n\n```go\n")
	lines, _, ended := strings.Cut(lines, "```")
	if !found || !ended {
		t.Fatal("the guide has no lines for a program of one's own")
	}
	return strings.Replace(program, "\tEMBED\n", lines, 1)
}

// buildModule builds a program as a module of its own, with the library's requirements.
func buildModule(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	module := strings.Replace(readFile(t, "../../go.mod"), "module github.com/edda-go/edda\n",
		"module shop.example/shop\n", 1) +
		"\nrequire github.com/edda-go/edda v0.0.0\n\nreplace github.com/edda-go/edda => " + strconv.Quote(root) + "\n"
	for name, text := range map[string]string{
		"main.go": program, "go.mod": module, "go.sum": readFile(t, "../../go.sum"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "shop", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return filepath.Join(dir, "shop")
}

// childrenOf returns the numbers of the child processes of a process.
func childrenOf(t *testing.T, pid int) (children string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the processes of %d are not known: %v", pid, err)
	}
	for _, file := range files {
		children += readFile(t, file)
	}
	return children
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
