package whereabouts

import (
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
)

// The place of a message that only its last attempt records.
func TestPlaceOfAnAttempt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entry := history.Entry{At: at, Endpoint: "a", Error: "no", Reason: "why", Info: history.Message{Attempt: 2}}
	const when = "2026-03-01 12:00:00.000Z"
	of := func(fate history.Fate, change func(*history.Entry)) history.Entry {
		e := entry
		if e.Fate = fate; change != nil {
			change(&e)
		}
		return e
	}
	for _, c := range []struct {
		e     history.Entry
		state State
		says  string
	}{
		{of(history.Handled, nil), Handled, "a handled it at " + when + " at attempt 2."},
		{of(history.Handled, func(e *history.Entry) { e.Saga, e.Key, e.Version, e.Info.Attempt = "order", "7", 1, 1 }),
			Handled, "a handled it at " + when + ", and began order 7."},
		{of(history.Discarded, nil), Discarded, "a discarded it at " + when + ": why."},
		{of(history.Discarded, func(e *history.Entry) { e.Reason = "" }), Discarded,
			"a discarded it at " + when + ": no."},
		{of(history.Relayed, nil), Relayed, "The relay a gave it to the other side at " + when + "."},
		{of(history.Died, func(e *history.Entry) { e.Info.Run = saga.ID{1} }), Dead,
			"It failed for good in a at " + when + ", after 2 attempts, and its run failed: no."},
		{of(history.Died, nil), Gone, "Attempt 2 in a failed at " + when + ": no. It was a dead letter, and has been " +
			"retried, edited or discarded since."},
		{of(history.Ingested, nil), Ingested, "It came in from an external system through a at " + when +
			". It is in no queue, and the history has no later record of it."},
	} {
		p := placeOf(&c.e)
		if got := p.Says(); p.State != c.state || got != c.says {
			t.Errorf("%s, %s\nwant %s, %s", p.State, got, c.state, c.says)
		}
	}
}
