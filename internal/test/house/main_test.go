package house

import (
	"log"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository: every path in them begins there.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		log.Fatal(err)
	}
	m.Run()
}
