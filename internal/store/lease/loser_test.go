package lease

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process without the lease costs one bid per interval, and no other statement.
func TestLoserAsksOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const acquire = 5 * time.Second
		var asked []time.Time
		s := &shelf{bids: func(int) (bool, error) {
			asked = append(asked, time.Now())
			return false, nil
		}}
		s.keep(t, Options{Acquire: acquire}, untilEnd, func(*Keeper) { pass(time.Hour) })
		if s.nrenew != 0 || s.epoch != 0 || len(asked) < 2 {
			t.Errorf("it bid %d times, renewed %d times, and had %d terms", len(asked), s.nrenew, s.epoch)
		}
		for n, at := range asked[1:] {
			if wait := at.Sub(asked[n]); wait < acquire*3/4 || wait > acquire*5/4 {
				t.Errorf("bid %d came %v after the last one, want %v and a quarter more or less", n+2, wait, acquire)
			}
		}
	})
}
