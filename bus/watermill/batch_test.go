package watermill_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// wholesale is a publisher that accepts up to a hundred messages at a time, all of them or none.
type wholesale struct {
	elsewhere
	calls, largest atomic.Int64
	away           atomic.Int64 // number of calls that fail, with any messages
}

func (b *wholesale) BatchMax() int { return 100 }

func (b *wholesale) Publish(topic string, messages ...*message.Message) error {
	b.calls.Add(1)
	b.largest.Store(max(b.largest.Load(), int64(len(messages))))
	if b.away.Add(-1) >= 0 {
		return errors.New("away")
	}
	for _, m := range messages {
		if b.refuse != nil {
			if err := b.refuse(m); err != nil {
				return fmt.Errorf("one of %d: %w", len(messages), err)
			}
		}
	}
	refuse := b.refuse
	defer func() { b.refuse = refuse }()
	b.refuse = nil
	return b.elsewhere.Publish(topic, messages...)
}

func (w *world) letters() (found string) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), `SELECT coalesce(string_agg(reason || ' ' || convert_from(body, 'UTF8'),`+
		` '; '), '') FROM "`+w.schema+`".dead_letter`).Scan(&found); err != nil {
		w.Fatal(err)
	}
	return found
}

// relayBatches relays n messages to b, and returns the messages that b has accepted, in their order of arrival.
func (w *world) relayBatches(b *wholesale, n, want int, o watermill.RelayOptions) []string {
	w.Helper()
	w.installRelay()
	w.pay(n)
	w.runRelayTo(b, o)
	var texts []string
	for _, m := range w.untilRelayed(&b.elsewhere, want) {
		texts = append(texts, string(m.Payload))
	}
	return texts
}

func bodies(n int, without ...int) (texts []string) {
	for i := range n {
		if !slices.Contains(without, i) {
			texts = append(texts, fmt.Sprintf(`{"N":%d}`, i))
		}
	}
	return texts
}

func TestARelayPublishesInBatches(t *testing.T) {
	w := newWorld(t)
	b := &wholesale{}
	got := w.relayBatches(b, 450, 450, watermill.RelayOptions{})
	if !slices.Equal(got, bodies(450)) {
		t.Errorf("%v", got)
	}
	if calls := b.calls.Load(); calls != 5 || b.largest.Load() != 100 {
		t.Errorf("%d calls, the largest of %d, want 5 of at most 100", calls, b.largest.Load())
	}
}

// An error of a batch names no message: the relay publishes each alone, and the neighbours of the unfit one arrive.
func TestAnUnfitMessageOfABatchIsTheOnlyDeadLetter(t *testing.T) {
	w := newWorld(t)
	b := &wholesale{}
	b.refuse = func(m *message.Message) error {
		if string(m.Payload) == `{"N":42}` {
			return saga.Permanent(errors.New("too large"))
		}
		return nil
	}
	if got := w.relayBatches(b, 250, 249, watermill.RelayOptions{}); !slices.Equal(got, bodies(250, 42)) {
		t.Errorf("%v", got)
	}
	w.until("it is a dead letter", func() bool { return w.letters() == `permanent {"N":42}` })
	if w.left("shop.events") != 0 {
		t.Error("something is left in the queue")
	}
}

// A message that is never accepted, without a permanent error, becomes a dead letter, and its neighbours do not.
func TestAStuckMessageOfABatchIsTheOnlyDeadLetter(t *testing.T) {
	w := newWorld(t)
	b := &wholesale{}
	b.refuse = func(m *message.Message) error {
		if string(m.Payload) == `{"N":42}` {
			return errors.New("no answer")
		}
		return nil
	}
	got := w.relayBatches(b, 250, 249, watermill.RelayOptions{RelayOptions: outbox.RelayOptions{Stuck: 3}})
	if !slices.Equal(got, bodies(250, 42)) {
		t.Errorf("%v", got)
	}
	w.until("it is a dead letter", func() bool { return w.letters() == `stuck {"N":42}` })
}

// If the other side is away, for a batch and for each single message, no message is lost.
func TestBatchesWaitForAnotherSideThatIsAway(t *testing.T) {
	w := newWorld(t)
	b := &wholesale{}
	b.away.Store(60)
	got := w.relayBatches(b, 250, 250, watermill.RelayOptions{RelayOptions: outbox.RelayOptions{Stuck: 3}})
	slices.Sort(got) // the first message that is accepted when it comes back may be one behind the first
	if want := slices.Sorted(slices.Values(bodies(250))); !slices.Equal(got, want) || w.letters() != "" {
		t.Errorf("%v, dead letters %s", got, w.letters())
	}
}
