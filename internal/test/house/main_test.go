package house

import (
	"log"
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// TestMain runs the tests in the root of the repository: every path in them begins there.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(pgdev.Main(m))
}
