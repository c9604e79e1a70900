package firing_test

import (
	"testing"

	"github.com/edda-go/edda/internal/engine/firing"
	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) {
	firing.Store = store
	pgtest.Main(m)
}
