package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// rawLog is what a raw handler was given, in order.
type rawLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *rawLog) add(d *saga.Delivery) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s x=%s", d.Info.Kind, d.Body, d.Info.Header("x")))
	return len(l.lines)
}

func (l *rawLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func rawMessages(kind string, bodies ...string) (messages []bus.RawMessage) {
	for _, body := range bodies {
		messages = append(messages, bus.RawMessage{Raw: saga.Raw{Name: kind, Body: []byte(body)},
			Header: map[string]string{"x": body}})
	}
	return messages
}

// sendRaw installs the endpoint of a relay and fills its queue.
func (w *world) sendRaw(endpoint string, messages ...bus.RawMessage) {
	w.t.Helper()
	relay := w.endpoint(endpoint, bus.EndpointOptions{},
		bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { return nil }))
	w.makeQueue(endpoint)
	if err := relay.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if err := w.bus.SendRaw(w.t.Context(), endpoint, messages...); err != nil {
		w.t.Fatal(err)
	}
}

// A relay gets what is addressed to it, whatever the kind, in the order in which it was sent together; what another
// part handles is not for it.
func TestRawHandlerGetsEveryOtherKind(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.sendRaw("relay", append(rawMessages("some.kind", "1", "2"), rawMessages("other.kind", "3", "4")...)...)
	var got rawLog
	around := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if d.Info.Kind != (add{}).Kind() { // the saga would not understand it
				d.Body = append([]byte("seen "), d.Body...)
			}
			return next(ctx, d)
		}
	}
	w.start("relay", bus.EndpointOptions{Concurrency: 1},
		bus.HandleRaw(func(ctx *bus.Context, d *saga.Delivery) error {
			if got.add(d) == 4 {
				ctx.Send(saga.Raw{Name: "yet.another", Body: []byte("5")}, saga.To("relay"))
			}
			return nil
		}, "event.kind"),
		bus.Saga(tallies(saga.Pessimistic, nil)), bus.Use(around))
	w.send(add{Key: "a", N: 7})
	if err := w.bus.PublishRaw(t.Context(), rawMessages("event.kind", "6")...); err != nil {
		t.Fatal(err)
	}
	w.untilEmpty("relay")
	want := []string{"some.kind seen 1 x=1", "some.kind seen 2 x=2", "other.kind seen 3 x=3", "other.kind seen 4 x=4"}
	if lines := strings.Split(got.String(), "\n"); len(lines) != 6 ||
		strings.Join(lines[:4], "\n") != strings.Join(want, "\n") ||
		!strings.Contains(got.String(), "yet.another seen 5") || !strings.Contains(got.String(), "event.kind seen 6") {
		t.Errorf("the raw handler got\n%s", &got)
	}
	if sum := w.sum("a"); sum != 7 {
		t.Errorf("the saga beside it has the sum %d, want 7", sum)
	}
}

// What a raw handler leaves keeps its place, its attempts and what is behind it; what came before is gone for good.
func TestRawHandlerLeavesAMessage(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.sendRaw("relay", rawMessages("k", "1", "2", "3")...)
	var got rawLog
	w.start("relay", bus.EndpointOptions{Concurrency: 1}, bus.HandleRaw(func(_ *bus.Context, d *saga.Delivery) error {
		if d.Info.Attempt != 1 {
			t.Errorf("%s is on attempt %d", d.Body, d.Info.Attempt)
		}
		if got.add(d); string(d.Body) == "2" && strings.Count(got.String(), "k 2") < 3 {
			return fmt.Errorf("not now: %w", bus.ErrLeave)
		}
		return nil
	}))
	w.untilEmpty("relay")
	if want := "k 1 x=1\nk 2 x=2\nk 2 x=2\nk 2 x=2\nk 3 x=3"; got.String() != want {
		t.Errorf("the raw handler got\n%s\nwant\n%s", &got, want)
	}
	if letters := w.count(`SELECT count(*) FROM edda.dead_letter`); letters != 0 {
		t.Errorf("%d dead letters", letters)
	}
}

// Any other error of a raw handler, and a panic, is the policy's.
func TestRawHandlerFails(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.sendRaw("relay", rawMessages("k", "good", "bad", "worse", "good")...)
	policy := func(recoverability.Failure) recoverability.Decision { return recoverability.DeadLetter() }
	w.start("relay", bus.EndpointOptions{Policy: policy}, bus.HandleRaw(func(_ *bus.Context, d *saga.Delivery) error {
		switch string(d.Body) {
		case "bad":
			return errors.New("no good")
		case "worse":
			panic("much worse")
		}
		return nil
	}))
	w.untilEmpty("relay")
	if letters := w.text(`SELECT string_agg(convert_from(body, 'UTF8'), ' ' ORDER BY id)
		FROM edda.dead_letter`); letters != "bad worse" {
		t.Errorf("dead letters %q, want bad worse", letters)
	}
}

// All are sent or none, also in the caller's transaction; a message that cannot travel is named.
func TestSendRaw(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.sendRaw("relay")
	table := w.queue("relay")
	many := make([]string, 3000)
	for n := range many {
		many[n] = fmt.Sprint(n)
	}
	if err := w.bus.SendRaw(t.Context(), "relay", rawMessages("k", many...)...); err != nil {
		t.Fatal(err)
	}
	misplaced := w.count(`SELECT count(*) FROM (
		SELECT convert_from(body, 'UTF8')::int - row_number() OVER (ORDER BY due, id) + 1 AS off FROM ` + table +
		`) o WHERE off <> 0`)
	if got := w.count(`SELECT count(*) FROM ` + table); got != len(many) || misplaced != 0 {
		t.Errorf("%d messages, %d of them out of order; want %d", got, misplaced, len(many))
	}
	id := saga.ID{1}
	same := bus.RawMessage{Raw: saga.Raw{Name: "k"}, ID: id}
	undone := errors.New("undo")
	for _, end := range []error{nil, undone} {
		err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			if err := w.bus.SendRawTx(t.Context(), tx, "relay", same, same); err != nil {
				t.Error(err)
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	if got := w.count(`SELECT count(*) FROM `+table+` WHERE id = $1`, id.String()); got != 2 {
		t.Errorf("%d messages with the given id, want the 2 of the transaction that committed", got)
	}
	err := w.bus.SendRaw(t.Context(), "relay", same, bus.RawMessage{Raw: saga.Raw{Name: "Bad Kind"}})
	if err == nil || !strings.Contains(err.Error(), "message 2 of 2") {
		t.Errorf("a bad kind: %v", err)
	}
	if err := w.bus.SendRaw(t.Context(), "nobody", same); !errors.Is(err, bus.ErrNoRoute) {
		t.Errorf("no such endpoint: %v", err)
	}
	if got := w.count(`SELECT count(*) FROM `+table+` WHERE id = $1`, id.String()); got != 2 {
		t.Errorf("a refused call has sent something: %d messages", got)
	}
}

func TestHandleRawIsChecked(t *testing.T) {
	w := newWorld(t, bus.Options{})
	f := func(*bus.Context, *saga.Delivery) error { return nil }
	_, err := bus.NewEndpoint(w.bus, "relay", bus.EndpointOptions{}, bus.HandleRaw(nil), bus.HandleRaw(f, "Bad Kind"),
		bus.HandleRaw(f))
	for _, want := range []string{"handler is nil", "kind: name of 8 bytes", "given twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}
