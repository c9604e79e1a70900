package pgdev

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// apartVariable names the test that this process runs apart.
const apartVariable = "EDDA_TEST_APART"

// Apart runs the test in a process of its own, on the same server, and fails it if that process fails: so a panic in
// a goroutine of the engine is a failure of the test that caused it. It reports whether it did, and then the caller
// must return.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartVariable) == t.Name() {
		return false
	}
	parts := strings.Split(t.Name(), "/")
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.count=1", "-test.run",
		"^"+strings.Join(parts, "$/^")+"$")
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, LocaleVariable+"=") || strings.HasPrefix(v, DefaultsVariable+"=")
	}), "DATABASE_URL="+DSN(t), apartVariable+"="+t.Name())
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("the process of this test failed: %v\n%s", err, output[:min(len(output), 8000)])
	}
	return true
}
