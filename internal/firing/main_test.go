package firing_test

import (
	"testing"

	"github.com/edda-go/edda/internal/firing"
	"github.com/edda-go/edda/internal/pg/pgtest"
)

func TestMain(m *testing.M) {
	firing.Store = store
	pgtest.Main(m)
}
