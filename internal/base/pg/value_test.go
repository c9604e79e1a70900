package pg_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
)

// A delay that is rounded down to microseconds would end early.
func TestDelaysAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, 1500: 2, time.Second: 1e6} {
		if got := pg.Micros(d); got != want {
			t.Errorf("%v is %d µs, want %d", d, got, want)
		}
	}
}
