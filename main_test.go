package edda_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
)

// TestMain checks that the tests leave no goroutine behind.
func TestMain(m *testing.M) { pgtest.Main(m) }
