package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
)

// A worker does not load an instance that another worker of its process has in hand. So the workers of one process lose
// no save to each other, although the store locks nothing.
func TestWorkersOfOneProcessLoseNoSave(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var inside gauge
	w.start("tallies", bus.EndpointOptions{BatchMax: 5, Concurrency: 4},
		bus.Saga(tallies(saga.Optimistic, func(saga.Message) {
			inside.enter()
			defer inside.leave()
			<-time.After(time.Millisecond)
		})))
	const messages = 200
	for range messages {
		w.send(add{Key: "a", N: 1})
	}
	w.untilEmpty("tallies")
	if most := inside.most.Load(); most != 1 {
		t.Errorf("%d steps of one instance ran at a time", most)
	}
	if lost := eventsOf[event.Conflicted](w); len(lost) > 0 {
		t.Errorf("%d saves were lost, the first: %+v", len(lost), lost[0])
	}
	w.want(messages, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
}
