package pgtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"go.uber.org/goleak"
)

// Main is the body of a TestMain: it runs the tests, stops their Postgres, and fails if a goroutine is left.
func Main(m *testing.M) {
	code := pgdev.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines leak:", err)
		code = 1
	}
	os.Exit(code)
}
