package edda_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
	"go.uber.org/goleak"
)

// TestMain sees that a host leaves no goroutine behind.
func TestMain(m *testing.M) {
	code := pgdev.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
