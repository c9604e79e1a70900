package firing_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/firing"
	"github.com/edda-go/edda/internal/pgdev"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	firing.Store = store
	code := pgdev.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines leak:", err)
			code = 1
		}
	}
	os.Exit(code)
}
