package wake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/wake"
)

// heard is a Waker that records its calls.
type heard struct {
	name string
	all  *[]string
	idle bool
}

func (h *heard) Wake() bool         { *h.all = append(*h.all, h.name); return h.idle }
func (h *heard) WakeAt(_ time.Time) { *h.all = append(*h.all, h.name+" later") }

func TestHubPassesOn(t *testing.T) {
	t.Parallel()
	var got []string
	hub := wake.NewHub(func(queue int) { got = append(got, fmt.Sprint("called ", queue)) })
	detach := hub.Attach(1, &heard{"one", &got, false})
	hub.Attach(2, &heard{"two", &got, true})
	stop := hub.Listen("limit:", func(rest string) { got = append(got, "limit "+rest) })
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		got = nil
	}

	if hub.Wake(1, time.Time{}) {
		t.Error("an idle loop was reported, and there is none")
	}
	expect("called 1", "one")
	if !hub.Wake(1, time.Now().Add(time.Hour)) {
		t.Error("nobody is to be woken for a later time, and somebody is to be")
	}
	expect("one later")
	hub.Hear("2,limit:orders,nonsense,lease:relay/x,7")
	expect("called 2", "two", "limit orders", "called 7")
	hub.Missed()
	slices.Sort(got)
	expect("limit ", "one", "two")
	detach()
	stop()
	hub.Hear("1,limit:orders")
	expect("called 1")
}
