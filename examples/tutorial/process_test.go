package tutorial_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// build compiles a program of a folder, with flags of the go command.
func build(t *testing.T, folder string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(folder))
	goCommand(t, append([]string{"build", "-o", program}, append(flags, "./"+folder)...)...)
	return program
}

func goCommand(t *testing.T, arguments ...string) {
	t.Helper()
	if printed, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", arguments, err, printed)
	}
}

// process is a program that runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // what it logs
}

// start starts a program with its arguments, and with variables beside those of the test.
func start(t *testing.T, program string, variables []string, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, arguments...), lines: make(chan string, 10_000)}
	p.cmd.Env = append(os.Environ(), variables...)
	logged, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for all := bufio.NewScanner(logged); all.Scan(); {
			p.lines <- all.Text()
		}
	}()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// says waits until the program has logged a line with each of these texts, in any order, and returns the last one.
func (p *process) says(texts ...string) string {
	p.t.Helper()
	var seen []string
	for line := range p.lines {
		seen = append(seen, line)
		if i := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(line, text) }); i >= 0 {
			texts = slices.Delete(texts, i, i+1)
		}
		if len(texts) == 0 {
			return line
		}
	}
	p.t.Fatalf("the program ended and did not say %q:\n%s", texts, strings.Join(seen, "\n"))
	return ""
}

// stops sends a signal, and wants a clean end.
func (p *process) stops(by os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(by); err != nil {
		p.t.Fatal(err)
	}
	p.ends()
}

// ends waits for the end of a program, and wants a clean one.
func (p *process) ends() {
	p.t.Helper()
	for range p.lines { // Wait closes the pipe
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the program did not end as it should: %v", err)
	}
}

// fails waits for a line with text, and for an end that is an error.
func (p *process) fails(text string) {
	p.t.Helper()
	p.says(text)
	for range p.lines { // Wait closes the pipe
	}
	if err := p.cmd.Wait(); err == nil {
		p.t.Errorf("the program said %q and ended as if nothing had happened", text)
	}
}
