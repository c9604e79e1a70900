package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// After a success the first retry comes as soon as after the very first failure.
func TestWaitsOfARelayBeginAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	c := newCarrier(&Relay{options: RelayOptions{Retry: time.Second, MaxRetryDelay: time.Hour, BatchMax: 1,
		Permanent: func(error) bool { return false }}}, nil, failures{}, nil)
	waits := func(err error) time.Duration {
		b := &batch{now: time.Now(), read: time.Now()}
		c.decide(t.Context(), b, []*message{{}}, []error{err})
		return b.wait
	}
	away, last := errors.New("away"), time.Duration(0)
	for range 10 {
		last = waits(away)
	}
	if waits(nil); last < time.Minute {
		t.Errorf("after ten failures it waits for %v", last)
	}
	if got := waits(away); got > 2*time.Second {
		t.Errorf("after a success and a failure it waits for %v", got)
	}
}

// Messages that were read behind a pass may follow a gap, so gone ends with the last message of the pass.
func TestPassEndsBeforeAGap(t *testing.T) {
	t.Parallel()
	b := &batch{beyond: 1}
	for n := range 3 {
		b.messages = append(b.messages, &message{fate: fateRelayed,
			Row: queue.Row{ID: saga.ID{byte(n)}, Due: time.Unix(int64(n), 0)}})
	}
	if got := b.gone(); got != b.messages[1].Position() {
		t.Errorf("all up to %v are gone", got)
	}
}
