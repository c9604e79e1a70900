package scaffold

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

const source = "../../../.." // of Edda

// The written program compiles, is formatted and passes its tests with the tools of this machine; it pays its order and
// ends at an interrupt.
func TestProgramIsWhole(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "Coffee.Shop")
	files, err := Write(Options{Folder: folder, Replace: source})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", "Makefile", "README.md", "doc.go", "go.mod", "main.go", "main_test.go",
		"messages.go", "order.go", "order_test.go", "payments.go"}
	if !slices.Equal(files, want) {
		t.Errorf("the files are %v, want %v", files, want)
	}
	env := append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off",
		"DATABASE_URL="+pgdev.Database(t), "EDDA_PAGES=off")
	program := filepath.Join(t.TempDir(), "program")
	for _, command := range [][]string{{"go", "vet", "./..."}, {"go", "test", "./..."}, {"gofmt", "-l", "."},
		{"go", "build", "-o", program}} {
		c := exec.CommandContext(t.Context(), command[0], command[1:]...)
		c.Dir, c.Env = folder, env
		if out, err := c.CombinedOutput(); err != nil || command[0] == "gofmt" && len(out) > 0 {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	run := exec.CommandContext(t.Context(), program)
	run.Env = env
	printed, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(printed)
	for paid := false; !paid && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		paid = strings.HasSuffix(lines.Text(), ": 1990 cents are paid")
	}
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // to its end, before Wait closes the pipe
		said.WriteString(lines.Text() + "\n")
	}
	if err := run.Wait(); err != nil || !strings.Contains(said.String(), "1990 cents are paid") {
		t.Errorf("the program ended with %v and said\n%s", err, said.String())
	}
}

// All places that name the program have its name, and go.mod has the given version.
func TestProgramIsNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := Write(Options{Folder: folder, Module: "example.com/The.Very_Long-Name-Of-A-Shop",
		Version: "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"go.mod":     "module example.com/The.Very_Long-Name-Of-A-Shop\n\ngo 1.25.0\n\nrequire " + edda + " v1.2.3\n",
		"doc.go":     "// Command The.Very_Long-Name-Of-A-Shop asks",
		"main.go":    `eddadev.Connect(ctx, "the-very_long-name-o")`,
		"README.md":  "# The.Very_Long-Name-Of-A-Shop\n",
		".gitignore": "/The.Very_Long-Name-Of-A-Shop\n",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v\n%s", name, want, err, text)
		}
	}
	own, err := os.ReadFile(source + "/go.mod")
	if err != nil || !strings.Contains(string(own), "\ngo "+goVersion+"\n") {
		t.Errorf("the program asks for Go %s, Edda does not: %v", goVersion, err)
	}
}

func TestWhatIsThereIsLeftAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for wrong, o := range map[string]Options{
		"is not empty":              {Folder: folder, Module: "shop", Version: "v1.0.0"},
		"make the folder":           {Folder: filepath.Join(folder, "mine", "below"), Version: "v1.0.0"},
		`module "sh op": want`:      {Folder: filepath.Join(folder, "sh op"), Version: "v1.0.0"},
		`module "example.com//a"`:   {Folder: filepath.Join(folder, "a"), Module: "example.com//a", Version: "v1.0.0"},
		`module "-v": want`:         {Folder: filepath.Join(folder, "-v"), Version: "v1.0.0"},
		`module ".": want`:          {Folder: filepath.Join(folder, "b"), Module: ".", Version: "v1.0.0"},
		"package log belongs to Go": {Folder: filepath.Join(folder, "log"), Version: "v1.0.0"},
		"is not the source of Edda": {Folder: filepath.Join(folder, "c"), Replace: folder},
	} {
		if _, err := Write(o); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%+v: %v, want %q", o, err, wrong)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v; want one file", left, err)
	}
}
