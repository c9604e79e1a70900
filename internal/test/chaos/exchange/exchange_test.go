package exchange

import (
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m, Scenario) }

// The counts are exact though workers were killed with their batches open.
func TestCountsAreExact(t *testing.T) {
	t.Parallel()
	s := lab.Settings{Scenario: Scenario, Size: Scenario.Quick, Seed: 7, Out: t.Output()}
	if err := Scenario.Run(t.Context(), s); err != nil {
		t.Error(err)
	}
}
