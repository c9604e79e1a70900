package contention

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/saga"
)

// After a lost save no worker may hold an instance for a random time, under either of its names. The bound doubles
// with each loss, up to 50 ms.
func TestInstanceThatLostWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, longest := NewMemory(), map[int]time.Duration{}
		byKey, byID := Handle{Saga: "s", Key: "k"}, Handle{ID: saga.ID{1}}
		var by Holding
		for range 300 {
			m.contended = map[Handle]contention{}
			for loss := range 7 {
				m.LoseInstance(true, byKey, byID)
				wait := m.WaitOf(byKey)
				if wait != m.WaitOf(byID) {
					t.Fatalf("by key it waits %v, by id %v", wait, m.WaitOf(byID))
				}
				if wait > 0 && (m.Hold(&by, byKey) || m.Hold(&by, byID)) {
					t.Fatal("it is held while it waits")
				}
				<-time.After(wait)
				if !m.Hold(&by, byKey) || !m.Hold(&by, byID) {
					t.Fatal("its wait is over, and it cannot be held")
				}
				m.Release(&by)
				longest[loss] = max(longest[loss], wait)
			}
		}
		for loss, most := range []time.Duration{5, 10, 20, 40, 50, 50, 50} {
			if most *= time.Millisecond; longest[loss] > most || longest[loss] < most*3/4 {
				t.Errorf("after loss %d it waited at most %v of 300 times, want about %v", loss+1, longest[loss], most)
			}
		}
		m.LoseInstance(false, byKey, byID)
		if m.WaitOf(byKey) != 0 || !m.Hold(&by, byKey) {
			t.Error("it waits though it need not")
		}
	})
}

// Senders make kinds up: the log has a line for each of the first hundred, and no more.
func TestNewKindIsSaidOnceAndOfAHundredKinds(t *testing.T) {
	m, said := NewMemory(), 0
	for range 2 {
		for n := range 2 * mostKinds {
			if m.NewKind(strconv.Itoa(n)) {
				said++
			}
		}
	}
	if said != mostKinds {
		t.Errorf("%d kinds were said, want %d", said, mostKinds)
	}
}
