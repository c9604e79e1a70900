package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The other side was away for longer than Stuck failures last, so it has refused the first message, which is not the
// message's fault: when it is back, the first copies arrive in their order.
func TestRelayKeepsOrderAcrossALongOutage(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	a.set(func(*saga.Delivery) error { return errors.New("away") })
	want := w.sendCrossed(5)
	o := soonRelayed()
	o.Stuck = 3
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.until("it has been away for long", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.calls > 20 })
	a.set(nil)
	w.untilEmpty("border")
	if got := a.firsts(); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
}

// A publish that does not return delays all messages, and no other process can take over. The log has the reason.
func TestRelayTellsOfAnOtherSideThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	told, answers := make(chan string, 100), make(chan struct{})
	o := soonRelayed()
	o.Drain = 2 * time.Second
	o.Logger = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		told <- string(b)
		return len(b),
			nil
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	w.runRelay(w.relay(w.bus, o, func(context.Context, []*saga.Delivery) []error { <-answers; return nil }))
	w.sendCrossed(3)
	got := await(w, "a warning", told)
	for !strings.Contains(got, "does not answer") { // a slow machine logs further warnings
		got = await(w, "the warning", told)
	}
	if !strings.Contains(got, "endpoint=border") {
		t.Errorf("%q does not name the endpoint", got)
	}
	close(answers)
	w.untilEmpty("border")
}

// The envelope that a relay passes on has the same values as the message here.
func TestEnvelopeArrivesAsItLeft(t *testing.T) {
	w := newWorld(t, bus.Options{})
	other := w.anotherSchema()
	got := make(chan saga.Info, 100)
	other.start("border", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ crossed) error {
		got <- ctx.Info()
		return nil
	}))
	w.installRelay()
	ids := make([]string, 5)
	for n := range ids {
		ids[n] = newID(t).String()
	}
	headers := []string{`{}`, `{"edda-intent":"publish"}`,
		`{"edda-intent":"reply","edda-from":"asks","edda-instance":"` + ids[0] + `"}`}
	for _, conversation := range []string{"", ids[1]} {
		for _, correlation := range []string{"", ids[1], ids[2]} {
			for _, related := range []string{"", ids[1], ids[3]} {
				text := `{"who":"me"`
				for name, id := range map[string]string{"conversation": conversation, "correlation": correlation,
					"related": related, "origin": ids[4], "expire": "1h"} {
					if id != "" {
						text += fmt.Sprintf(`,"edda-%s":"%s"`, name, id)
					}
				}
				headers = append(headers, text+"}")
			}
		}
	}
	left := map[saga.ID]saga.Info{}
	for _, header := range headers {
		id := newID(t)
		w.exec(`INSERT INTO `+w.queue("border")+
			` (due, id, kind, header, body) VALUES (now(), $1::text::uuid, $2, $3, '{}')`, id.String(),
			crossed{}.Kind(), []byte(header))
		left[id] = saga.Info{}
	}
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	for _, info := range a.infos {
		left[info.ID] = info
		_, err := other.bus.Ingest(t.Context(), outbox.IngestOptions{From: "w", Endpoint: "border"},
			outbox.IngestMessage{ID: info.ID.String(), Kind: info.Kind, Header: outbox.Envelope(&info),
				Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range headers {
		there := await(other, "a message", got)
		here := left[there.ID]
		if here.Intent != there.Intent || here.From != there.From || here.Instance != there.Instance ||
			here.Origin != there.Origin || here.ConversationID != there.ConversationID ||
			here.CorrelationID != there.CorrelationID || here.RelatedTo != there.RelatedTo ||
			here.Header("who") != there.Header("who") || here.Expire != there.Expire {
			t.Errorf("left as\n%+v, arrived as\n%+v", here, there)
		}
	}
}
