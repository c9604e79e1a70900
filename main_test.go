package edda_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
)

// TestMain sees that a host leaves no goroutine behind.
func TestMain(m *testing.M) { pgtest.Main(m) }
