package pgdev_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestPatience(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 5, "1": 1, "100": 100, "0": 5, "101": 5, "long": 5} {
		t.Setenv(pgdev.PatienceVariable, value)
		if got := pgdev.Patience(time.Second); got != want*time.Second {
			t.Errorf("with %q: %v, want %v", value, got, want*time.Second)
		}
	}
}
