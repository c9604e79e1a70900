package eddaotel_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The program chooses the SDK: this module links only the API, and of Edda no more than its bus.
func TestLinksTheAPIAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		for _, not := range []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters",
			"github.com/prometheus", "github.com/ThreeDotsLabs", "go.uber.org"} {
			if strings.HasPrefix(dep, not) {
				t.Errorf("it links %s", dep)
			}
		}
	}
}
