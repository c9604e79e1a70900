package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// slow is a message that takes For milliseconds to decode.
type slow struct {
	Key string
	For int
}

func (slow) Kind() string { return "decode.slow" }

func (m slow) take() string {
	if m.For > 0 {
		<-time.After(time.Duration(m.For) * time.Millisecond)
	}
	return m.Key
}

// slowly has endpoints in which a user's function runs while a message is decoded.
var slowly = map[string]struct {
	order bus.Ordering
	parts []bus.Part
}{
	"Accept": {parts: []bus.Part{
		bus.Accept(func(m slow) (add, error) { return add{Key: m.take()}, nil }),
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }),
	}},
	"the key of a saga": {parts: []bus.Part{bus.Saga(saga.Define("slow", saga.Options{},
		saga.StartedBy(slow.take, func(*tally, *saga.Context, slow) error { return nil })))}},
	"the key of a lane": {order: bus.Overtaking,
		parts: []bus.Part{bus.Handle(func(*bus.Context, slow) error { return nil }, bus.KeyedBy(slow.take))}},
}

// If a function that decodes a message took too long, the server ended the transaction of its batch, again and again:
// the function was called without end, and its neighbours were not handled.
func TestSlowDecodingIsAFailureOfItsMessage(t *testing.T) {
	t.Parallel()
	for name, c := range slowly {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.slowly(bus.EndpointOptions{Ordered: c.order}, c.parts, 0, 0, 1500, 0, 0)
			w.untilEmpty("slow")
			w.want(1, `SELECT count(*) FROM edda.dead_letter`)
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 1
				AND position('1500' IN convert_from(body, 'UTF8')) > 0 AND position('decoding it took' IN error) > 0`)
		})
	}
}

// If many messages took a little time each, the server ended the transaction too. Now a batch decodes only as many as
// it has time for.
func TestDecodingHasTheTimeOfABatch(t *testing.T) {
	t.Parallel()
	for name, c := range slowly {
		if c.order != bus.Unordered {
			continue // it has no transaction that other transactions wait for
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.slowly(bus.EndpointOptions{Concurrency: 1}, c.parts, slices.Repeat([]int{150}, 16)...)
			w.untilEmpty("slow")
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			if failed := eventsOf[event.BatchFailed](w); len(failed) > 0 {
				t.Errorf("%d batches were lost: %v", len(failed), failed[0].Err)
			}
		})
	}
}

// slowly runs an endpoint on messages that take these times, in milliseconds, to decode.
func (w *world) slowly(o bus.EndpointOptions, parts []bus.Part, times ...int) {
	w.t.Helper()
	o.StepTimeout, o.Policy = 500*time.Millisecond, oneAttempt(w.t)
	e := w.endpoint("slow", o, parts...)
	w.makeQueue("slow")
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for n, ms := range times {
		w.send(slow{Key: fmt.Sprint("k", n), For: ms})
	}
	w.run(e)
}

// booby is a message and a state whose JSON methods can panic.
type booby struct{ Fuse bool }

func (booby) Kind() string { return "decode.booby" }

func (b *booby) UnmarshalJSON(body []byte) error {
	if b.Fuse = string(body) == "true"; b.Fuse {
		panic("UnmarshalJSON")
	}
	return nil
}

func (b booby) MarshalJSON() ([]byte, error) {
	if b.Fuse {
		panic("MarshalJSON")
	}
	return []byte("false"), nil
}

// A panic in a method that encoding/json calls ended the process, and again after each restart.
func TestPanicInDecodingIsAFailureOfItsMessage(t *testing.T) {
	if pgdev.Apart(t) {
		return
	}
	w := newWorld(t, bus.Options{})
	w.start("trapped", bus.EndpointOptions{Policy: once}, bus.Saga(saga.Define("trapped", saga.Options{},
		saga.StartedBy(func(booby) string { return "read" }, func(*booby, *saga.Context, booby) error { return nil }),
		saga.StartedBy(func(add) string { return "write" },
			func(s *booby, _ *saga.Context, _ add) error { s.Fuse = true; return nil }))))
	w.raw("decode.booby", `true`, `{}`, "trapped")
	w.send(add{N: 1})
	w.send(booby{})
	w.untilEmpty("trapped")
	w.want(1, `SELECT count(*) FROM edda.saga`)
	w.want(2, `SELECT count(*) FROM edda.dead_letter`)
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE kind = 'decode.booby'
		AND position('UnmarshalJSON' IN error) > 0`)
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE kind = 'tally.add' AND position('MarshalJSON' IN error) > 0`)
}

// A policy may retry at once a message that cannot be decoded. In a saga's endpoint that ended the process.
func TestUnreadableMessageOfAPolicyThatTriesAtOnce(t *testing.T) {
	if pgdev.Apart(t) {
		return
	}
	w := newWorld(t, bus.Options{})
	w.start("reads", bus.EndpointOptions{Policy: func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt < 3 {
			return recoverability.RetryNow()
		}
		return recoverability.DeadLetter()
	}}, bus.Saga(tallies(saga.Pessimistic, nil)))
	w.raw("tally.add", `{"Key":`, `{}`, "reads")
	w.untilEmpty("reads")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 3`)
}
