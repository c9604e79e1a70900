package dispatch_test

import (
	"testing"

	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) {
	dispatch.Store = store
	pgtest.Main(m)
}
