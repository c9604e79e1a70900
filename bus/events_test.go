package bus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// kept is a log in memory.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(b)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

func (k *kept) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(k, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// A panic of Events costs no message and no process: workers, relays and Ingest continue, and the log has one line
// about it.
func TestPanicOfEventsEndsNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.queueOf("notes")
	log := &kept{}
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger(),
		Events: func(event.Event) { panic("no such label\xff" + strings.Repeat("x", 1<<20)) }})
	e, err := bus.NewEndpoint(b, "notes", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	w.run(e)
	a := &abroad{}
	w.runRelay(w.relay(b, soonRelayed(), a.forward))
	for range 20 {
		w.send(note{}, saga.To("notes"))
		w.sendCrossed(1)
		if _, err := b.Ingest(t.Context(), outbox.IngestOptions{From: "payments", Endpoint: "notes"},
			outbox.IngestMessage{Kind: note{}.Kind(), Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		w.untilEmpty("notes")
		w.untilEmpty("border")
	}
	text := log.String()
	if n := strings.Count(text, "Options.Events failed"); n != 1 {
		t.Errorf("%d lines of the log say so, want 1 in a minute", n)
	}
	if !strings.Contains(text, "no such label") || !strings.Contains(text, "TestPanicOfEventsEndsNothing") ||
		len(text) > 20_000 {
		t.Errorf("the log has %d bytes: %.2000s", len(text), text)
	}
}

// A writer to a topic chooses the kind of the message that arrives: it may be any bytes. Events and the log have text
// of a bounded length.
func TestEventsAndLogHaveLegibleKinds(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	log := &kept{}
	var events []event.DeadLettered
	b := w.newBus(bus.Options{Schema: w.schema, Logger: log.logger(), Events: func(e event.Event) {
		if e, ok := e.(event.DeadLettered); ok {
			events = append(events, e)
		}
	}})
	kinds := []string{"order.pl\xe4ce", "order.place\n\x1b[2J", strings.Repeat("x", 1<<20),
		"\u00e4" + strings.Repeat("\u00e4", 50<<10), ""}
	for _, kind := range kinds {
		if _, err := b.Ingest(t.Context(), outbox.IngestOptions{From: "payments", Endpoint: "notes"},
			outbox.IngestMessage{Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	if len(events) != len(kinds) {
		t.Fatalf("%d events, want %d", len(events), len(kinds))
	}
	for n, e := range events {
		if kind := e.Info.Kind; !utf8.ValidString(kind) || strings.ContainsAny(kind, "\n\x1b") || len(kind) > 1000 {
			t.Errorf("the kind %.20q is %.100q in its event, %d bytes", kinds[n], kind, len(kind))
		}
	}
	if got := events[0].Info.Kind; got != `order.pl\xe4ce` {
		t.Errorf("the kind is %q in its event", got)
	}
	if text := log.String(); len(text) > 4000 || !strings.Contains(text, `order.pl\xe4ce`) {
		t.Errorf("the log has %d bytes: %.4000s", len(text), text)
	}
}

// A bus that sets only Rare gets the events of failures and batches.
func TestRareEvents(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	events := make(chan event.Event, 100)
	b := w.newBus(bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler),
		Rare: func(e event.Event) { events <- e }})
	e, err := bus.NewEndpoint(b, "notes", bus.EndpointOptions{},
		bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, n note) error {
			if n.Text == "bad" {
				return saga.Permanent(errors.New("no such shelf"))
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run(e)
	w.send(note{Text: "good"}, saga.To("notes"))
	w.send(note{Text: "bad"}, saga.To("notes"))
	w.untilEmpty("notes")
	stop() // its worker has emitted the last events
	close(events)
	handled, dead := 0, 0
	for e := range events {
		switch e := e.(type) {
		case event.Handled:
			t.Errorf("Rare got %v", e)
		case event.BatchDone:
			handled += e.Handled
		case event.DeadLettered:
			dead++
		}
	}
	if handled != 1 || dead != 1 {
		t.Errorf("%d handled and %d dead, want 1 and 1", handled, dead)
	}
}
