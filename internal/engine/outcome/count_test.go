package outcome

import (
	"testing"

	"github.com/edda-go/edda/internal/store/counters"
)

// Collect returns each count only once, because the caller adds it to a row of the database.
func TestCountsAreCollectedOnce(t *testing.T) {
	t.Parallel()
	c := NewCounts()
	for _, want := range []int64{2, 0, 1} {
		for range want {
			c.of(nil)[counters.Steps]++
		}
		got := int64(0)
		if counted, _ := c.Collect(); len(counted) > 0 {
			got = counted[0].Sums[counters.Steps]
		}
		if got != want {
			t.Errorf("collected %d, want %d", got, want)
		}
	}
}
