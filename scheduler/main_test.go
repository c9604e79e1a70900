package scheduler_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/test/procs"
)

func TestMain(m *testing.M) {
	procs.Become(releaseVariable, "release", runRelease)
	pgtest.Main(m)
}
