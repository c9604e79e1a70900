package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// rawLog records the messages of a raw handler, in order.
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

// A raw handler gets the messages that are addressed to its endpoint, whatever the kind, in the order of their send,
// except the messages that another part handles.
func TestRawHandlerGetsEveryOtherKind(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.sendRaw("relay", append(rawMessages("some.kind", "1", "2"), rawMessages("other.kind", "3", "4")...)...)
	var got rawLog
	around := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if d.Info.Kind != (add{}).Kind() { // the saga cannot decode it
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
	if err := w.bus.SendRaw(t.Context(), "*", rawMessages("event.kind", "6")...); err != nil {
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

// A message that a raw handler leaves, and those behind it, keep place and attempts; messages before it are deleted.
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

// The policy decides about any other error of a raw handler, and about a panic.
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

// All messages are sent or none, also in the caller's transaction; the error names a message that cannot be sent.
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
	if err := w.bus.SendRaw(t.Context(), "", same); err == nil ||
		!strings.Contains(err.Error(), "To: name of 0 bytes") {
		t.Errorf("no endpoint: %v", err)
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
	for _, want := range []string{"handler is nil", `kind "Bad Kind": name of 8 bytes`, "given twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}

// Messages of one kind as bytes, in a transaction and outside, together with handlers of other kinds: the handler's
// rows and messages commit with the end of the message.
func TestHandlersOfBytes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.exec(`CREATE TABLE edda.written (what text); GRANT ALL ON edda.written TO PUBLIC`)
	insert := `INSERT INTO ` + pgx.Identifier{w.schema, "written"}.Sanitize() + ` VALUES ($1)`
	var got, leased rawLog
	note := func(l *rawLog, c *bus.Context, m saga.Raw) { l.add(&saga.Delivery{Info: c.Info(), Body: m.Body}) }
	inside := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m saga.Raw) error {
		note(&got, ctx, m)
		ctx.Send(saga.Raw{Name: "answer", Body: m.Body}, saga.To("outside"))
		if _, err := tx.Exec(ctx, insert, string(m.Body)); err != nil {
			return err
		}
		if string(m.Body) == "bad" {
			return errors.New("no good")
		}
		return nil
	}, bus.OfKind("event.kind"))
	ofKey := bus.KeyedBy(func(m saga.Raw) string { return m.Name + string(m.Body) })
	outside := bus.Handle(func(c *bus.Context, m saga.Raw) error {
		note(&leased, c, m)
		return nil
	}, bus.OfKind("answer"), ofKey)
	w.makeQueue("outside")
	w.start("inside", bus.EndpointOptions{Policy: once, Concurrency: 1}, inside,
		bus.Saga(tallies(saga.Pessimistic, nil)))
	w.start("outside", bus.EndpointOptions{Ordered: bus.Strict}, outside)
	if err := w.bus.SendRaw(t.Context(), "*", rawMessages("event.kind", "good", "bad")...); err != nil {
		t.Fatal(err)
	}
	w.untilEmpty("inside")
	w.untilEmpty("outside")
	if want := "event.kind good x=good\nevent.kind bad x=bad"; got.String() != want {
		t.Errorf("the handler inside got\n%s\nwant\n%s", &got, want)
	}
	if want := "answer good x="; leased.String() != want {
		t.Errorf("the handler outside got\n%s\nwant\n%s", &leased, want)
	}
	if written := w.text(`SELECT string_agg(what, ' ') FROM edda.written`); written != "good" {
		t.Errorf("written: %q, want good", written)
	}
}

// For every subscriber: each gets a copy of each message, all or nothing, also in the caller's transaction.
func TestSendRawToSubscribers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	nothing := func(*bus.Context, *saga.Delivery) error { return nil }
	w.install("first", bus.HandleRaw(nothing, "event.kind"))
	w.install("second", bus.HandleRaw(nothing, "event.kind", "second.kind"))
	all := append(rawMessages("event.kind", "1", "2"), rawMessages("second.kind", "3")...)
	undone := errors.New("undo")
	for _, end := range []error{undone, nil} {
		err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			return errors.Join(w.bus.SendRawTx(t.Context(), tx, "*", all...), end)
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	if err := w.bus.SendRaw(t.Context(), "*", rawMessages("second.kind", "4", "5")...); err != nil {
		t.Error(err)
	}
	for queue, want := range map[string]string{"first": "1 2", "second": "1 2 3 4 5"} {
		if got := w.text(`SELECT string_agg(convert_from(body, 'UTF8'), ' ' ORDER BY due, id) FROM ` +
			w.queue(queue)); got != want {
			t.Errorf("%s has %s, want %s", queue, got, want)
		}
	}
}

// unheard is a kind that no endpoint is subscribed to.
type unheard struct{}

func (unheard) Kind() string { return "unheard.kind" }

// A MustRoute event without a subscriber is refused, whichever way it is published; without MustRoute it is sent to no
// queue. A handler that publishes one has failed permanently.
func TestMustRoute(t *testing.T) {
	w := newWorld(t, bus.Options{})
	raw := rawMessages("unheard.kind", "1")
	mustRaw := []bus.RawMessage{{Raw: raw[0].Raw, MustRoute: true}}
	w.install("listener", bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { return nil }, "event.kind"))
	inTx := func(f func(tx pgx.Tx) error) error { return w.bus.InTx(t.Context(), f) }
	for name, publish := range map[string]func(o ...saga.SendOption) error{
		"Publish": func(o ...saga.SendOption) error { return second(w.bus.Publish(t.Context(), unheard{}, o...)) },
		"PublishTx": func(o ...saga.SendOption) error {
			return inTx(func(tx pgx.Tx) error { return second(w.bus.PublishTx(t.Context(), tx, unheard{}, o...)) })
		},
		"PublishSQL": func(o ...saga.SendOption) error {
			db := stdlib.OpenDBFromPool(w.pool)
			defer db.Close()
			return w.bus.SQL(db).InTx(t.Context(), func(tx *sql.Tx) error {
				return second(w.bus.SQL(nil).PublishTx(t.Context(), tx, unheard{}, o...))
			})
		},
		"SendRaw": func(o ...saga.SendOption) error {
			return w.bus.SendRaw(t.Context(), "*", append(rawMessages("event.kind", "1"),
				map[int][]bus.RawMessage{0: raw, 1: mustRaw}[len(o)]...)...)
		},
		"SendRawTx": func(o ...saga.SendOption) error {
			return inTx(func(tx pgx.Tx) error {
				return w.bus.SendRawTx(t.Context(), tx, "*", map[int][]bus.RawMessage{0: raw, 1: mustRaw}[len(o)]...)
			})
		},
	} {
		if err := publish(); err != nil {
			t.Errorf("%s without MustRoute: %v", name, err)
		}
		if err := publish(saga.MustRoute()); !errors.Is(err, bus.ErrNoRoute) ||
			!strings.Contains(err.Error(), "publish unheard.kind") {
			t.Errorf("%s with MustRoute: %v", name, err)
		}
	}
	if got := w.count(`SELECT count(*) FROM ` + w.queue("listener")); got != 1 {
		t.Errorf("%d messages are in the queue, want the one of the call that was not refused", got)
	}
	step := func(publish func(m saga.Message, o ...saga.SendOption) saga.ID, m saga.Raw) {
		if string(m.Body) == "must" {
			publish(unheard{}, saga.MustRoute())
		} else {
			publish(unheard{})
		}
	}
	w.start("inside", bus.EndpointOptions{}, bus.HandleTx(func(c *bus.Context, _ pgx.Tx, m saga.Raw) error {
		step(c.Publish, m)
		return nil
	}, bus.OfKind("inside.kind")))
	w.start("outside", bus.EndpointOptions{}, bus.Handle(func(c *bus.Context, m saga.Raw) error {
		step(c.Publish, m)
		return nil
	}, bus.OfKind("outside.kind")))
	for _, kind := range []string{"inside", "outside"} {
		if err := w.bus.SendRaw(t.Context(), kind, rawMessages(kind+".kind", "must", "may")...); err != nil {
			t.Fatal(err)
		}
		w.untilEmpty(kind)
	}
	if letters := w.text(`SELECT string_agg(convert_from(body, 'UTF8') || ' ' || attempts, ', ')
		FROM edda.dead_letter WHERE position('publish unheard.kind' IN error) > 0`); letters != "must 1, must 1" {
		t.Errorf("dead letters %s, want the two that had to have a route, at once", letters)
	}
}

func second[T any](_ T, err error) error { return err }

// A part of another package may report that it cannot be made.
func TestFaultOfAPart(t *testing.T) {
	w := newWorld(t, bus.Options{})
	mine := errors.New("no handler")
	_, err := bus.NewEndpoint(w.bus, "e", bus.EndpointOptions{}, bus.InvalidPart(mine),
		bus.Handle(func(*bus.Context, saga.Raw) error { return nil }),
		bus.Handle(nil, bus.OfKind("some.kind")))
	if !errors.Is(err, mine) || !strings.Contains(err.Error(), "some.kind: the handler is nil") ||
		!strings.Contains(err.Error(), `kind "": name of 0 bytes`) {
		t.Errorf("the faults are not all named: %v", err)
	}
}
