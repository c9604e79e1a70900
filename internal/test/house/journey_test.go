package house

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// stretch is how much of the code one message crosses.
type stretch struct{ packages, files, functions int }

// journeys are today's figures, which may only fall, and the goals; 0 is no goal.
var journeys = map[string]struct{ today, goal stretch }{
	"saga":   {stretch{18, 88, 374}, stretch{16, 55, 260}},
	"leased": {stretch{16, 81, 296}, stretch{16, 50, 0}},
	"run":    {stretch{25, 104, 456}, stretch{20, 70, 0}},
}

// One message crosses few packages, files and functions. The program internal/test/journey handles it, built with
// coverage.
func TestOneMessageIsShort(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "journey")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=./...", "-o", program,
		"./internal/test/journey")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for mode, want := range journeys {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			travel := exec.CommandContext(t.Context(), program, mode, t.TempDir())
			travel.Env = append(os.Environ(), "DATABASE_URL="+pgdev.DSN(t), "GOCOVERDIR="+t.TempDir())
			if out, err := travel.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			crossed := crossedIn(t, travel.Args[2])
			got := measure(crossed)
			t.Logf("a message of %s crosses %+v, the goal is %+v", mode, got, want.goal)
			if got.packages > want.today.packages || got.files > want.today.files ||
				got.functions > want.today.functions {
				t.Errorf("a message of %s crosses %+v, the limit is %+v: %s", mode, got, want.today,
					strings.Join(crossed, "\n"))
			}
		})
	}
}

// crossedFunction is a line of go tool covdata func: a file, a line, a name, and how much of it ran.
var crossedFunction = regexp.MustCompile(`(?m)^` + module + `/(\S+\.go):(\d+):\s+(\S+)\s+([\d.]+)%$`)

// crossedIn returns the functions that ran for each of the messages in dir, as file, line and name. Tools for tests are
// left out.
func crossedIn(t *testing.T, dir string) []string {
	t.Helper()
	messages, err := os.ReadDir(dir)
	if err != nil || len(messages) == 0 {
		t.Fatalf("%d messages were measured, %v", len(messages), err)
	}
	times := map[string]int{}
	for _, m := range messages {
		out, err := exec.Command("go", "tool", "covdata", "func", "-i", filepath.Join(dir, m.Name())).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range crossedFunction.FindAllStringSubmatch(string(out), -1) {
			if !under(testTools, f[1]) && f[4] != "0.0" {
				times[fmt.Sprintf("%s:%s %s", f[1], f[2], f[3])]++
			}
		}
	}
	var crossed []string
	for f, n := range times {
		if n == len(messages) {
			crossed = append(crossed, f)
		}
	}
	slices.Sort(crossed)
	return crossed
}

func measure(crossed []string) stretch {
	packages, files := map[string]bool{}, map[string]bool{}
	for _, f := range crossed {
		file, _, _ := strings.Cut(f, ":")
		files[file], packages[filepath.Dir(file)] = true, true
	}
	return stretch{len(packages), len(files), len(crossed)}
}
