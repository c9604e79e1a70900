package limit_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) {
	if hold() {
		return
	}
	pgtest.Main(m)
}
