package debounce

import (
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

const moment = time.Millisecond

// editing delivers an edit of document 7 after each of these pauses.
func editing(t *testing.T, pauses ...time.Duration) *sagatest.Run {
	t.Helper()
	r := sagatest.New(t, Bursts)
	for _, pause := range pauses {
		advance(t, r, pause)
		if err := r.Deliver(Edited{Document: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func advance(t *testing.T, r *sagatest.Run, d time.Duration) {
	t.Helper()
	if err := r.Advance(d); err != nil {
		t.Fatal(err)
	}
}

func wantSent(t *testing.T, r *sagatest.Run, want ...saga.Message) {
	t.Helper()
	if got := r.Sent(); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestBurstIsIndexedOnceItIsQuiet(t *testing.T) {
	t.Parallel()
	r := editing(t, 0, quiet-moment, quiet-moment)
	advance(t, r, quiet-moment)
	wantSent(t, r)
	advance(t, r, moment)
	wantSent(t, r, Index{Document: "7"})
	if r.Live("7") {
		t.Error("the burst is not over")
	}
}

func TestBurstThatNeverEndsIsIndexed(t *testing.T) {
	t.Parallel()
	r := editing(t, slices.Repeat([]time.Duration{time.Second}, int(longest/time.Second))...)
	wantSent(t, r)
	advance(t, r, time.Second)
	wantSent(t, r, Index{Document: "7"})
}

func TestEditAfterTheBurstBeginsAnother(t *testing.T) {
	t.Parallel()
	r := editing(t, 0, quiet, 0)
	wantSent(t, r, Index{Document: "7"})
	advance(t, r, quiet)
	wantSent(t, r, Index{Document: "7"})
}
