package scheduler_test

import (
	"testing"

	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/internal/procs"
)

func TestMain(m *testing.M) {
	procs.Become(releaseVariable, "release", runRelease)
	pgtest.Main(m)
}
