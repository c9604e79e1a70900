package bus_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// All parts of an endpoint share its workers, sagas and plain handlers alike.
func TestConcurrencyIsOfTheWholeEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	two := newMeeting(2)
	parts := []bus.Part{bus.Saga(tallies(saga.Pessimistic, func(saga.Message) { two.visit() })),
		bus.HandleTx(func(*bus.Context, pgx.Tx, place) error { two.visit(); return nil })}
	w.install("mixed", parts...)
	for n := range 40 { // before the workers start, so that a surplus worker finds work
		w.send(add{Key: fmt.Sprint(n), N: 1})
		w.send(place{Order: fmt.Sprint(n)})
	}
	w.start("mixed", bus.EndpointOptions{BatchMax: 1, Concurrency: 2, StepTimeout: time.Minute}, parts...)
	w.untilEmpty("mixed")
	if most := two.most.Load(); most != 2 {
		t.Errorf("%d handlers of the endpoint ran at a time, want 2", most)
	}
}

// With one worker handling is sequential, and no save of the optimistic store is ever lost. With several processes, a
// limit of 1 has the same effect.
func TestOneWorkerLosesNoSave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		processes int
		options   bus.EndpointOptions
	}{
		"one process": {1, bus.EndpointOptions{BatchMax: 5, Concurrency: 1}},
		"three processes with a limit of one": {3,
			bus.EndpointOptions{BatchMax: 5, Concurrency: 2, ClusterConcurrency: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			w.start("tallies", c.options, bus.Saga(tallies(saga.Optimistic, nil)))
			for range c.processes - 1 {
				w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", c.options,
					bus.Saga(tallies(saga.Optimistic, nil)))
			}
			const messages, keys = 200, 2
			for n := range messages {
				w.send(add{Key: fmt.Sprint(n % keys), N: 1})
			}
			w.untilEmpty("tallies")
			if lost := eventsOf[event.Conflicted](w); len(lost) > 0 {
				t.Errorf("%d saves were lost, the first: %+v", len(lost), lost[0])
			}
			w.want(messages, `SELECT sum((state ->> 'Sum')::int) FROM edda.saga`)
		})
	}
}

// Concurrency applies to each process: two processes with one worker each handle messages of one instance at the same
// time.
func TestOneWorkerInEachOfTwoProcessesIsTwo(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	g := newGate(t)
	one := bus.EndpointOptions{BatchMax: 1, Concurrency: 1}
	w.start("tallies", one, bus.Saga(tallies(saga.Optimistic, stopAt(g, 2))))
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("tallies")
	w.send(add{Key: "a", N: 2})
	await(w, "a step of the first process", g.came)
	w.startOn(w.process(pgdev.DSN(t), bus.Options{}), "tallies", one, bus.Saga(tallies(saga.Optimistic, nil)))
	w.send(add{Key: "a", N: 4})
	w.until("the second process is done with it", func() bool { return w.sum("a") == 5 })
	g.open()
	w.untilEmpty("tallies")
	w.want(7, `SELECT (state ->> 'Sum')::int FROM edda.saga`)
	if n := len(eventsOf[event.Conflicted](w)); n != 1 {
		t.Errorf("%d saves were lost, want that of the first process%s", n, w.story())
	}
}

// A free handler stayed idle while a message was due: a message that a second handler was about to begin was counted
// both as running and as waiting.
func TestNoLeasedHandlerIsIdleWhileMessagesAreDue(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.makeQueue("callers")
	const rounds = 40
	var both [rounds]sync.WaitGroup
	for n := range both {
		both[n].Add(2)
	}
	w.start("callers", bus.EndpointOptions{Concurrency: 2, BatchMax: 1, Poll: time.Minute},
		bus.Handle(func(_ *bus.Context, m call) error {
			both[m.N].Done()
			both[m.N].Wait() // it ends when the other handler has begun
			return nil
		}))
	for n := range both {
		w.send(call{N: n})
		w.send(call{N: n})
		w.untilEmpty("callers")
	}
}
