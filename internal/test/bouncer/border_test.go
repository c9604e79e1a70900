//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// twice is a publisher that loses the answer of its broker, so that everything is delivered again.
type twice struct{ message.Publisher }

func (p twice) Publish(topic string, all ...*message.Message) error {
	for range 2 {
		for _, m := range all {
			if err := p.Publisher.Publish(topic, m.Copy()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Messages go out by a relay, come in by an intake, each of them twice, and have their effect once, while both rings
// turn.
func TestBorderWhileTheRingTurns(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(
		func(ctx *bus.Context, tx pgx.Tx, m task) error { return w.effect(ctx, tx, m.Key, m.N) }))
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true, OutputChannelBuffer: 100}, wm.NopLogger{})
	defer func() { _ = broker.Close() }()
	relay, err := watermill.NewRelay(w.bus, "border", twice{broker},
		watermill.RelayOptions{RelayOptions: bus.RelayOptions{Poll: quickly, Keep: time.Hour}})
	if err == nil {
		err = relay.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	stopRelay := w.run(relay.Run)
	intake, err := watermill.NewIntake(w.bus, "border", broker,
		watermill.IntakeOptions{Endpoint: "tasks", Logger: slog.New(w.log)})
	if err != nil {
		t.Fatal(err)
	}
	stopIntake := w.run(intake.Run)
	const n = 40
	for turn := range 3 {
		for i := range n {
			w.send(task{Key: fmt.Sprintf("turn %d", turn), N: i}, saga.To("border"))
		}
		w.turn(ring.Inbox)
		w.turn(ring.Outbox)
	}
	w.awaitEffects(3 * n)
	w.await("what was relayed is kept", fmt.Sprint(3*n), "SELECT count(*)::text FROM :schema.outbox")
	stopRelay()
	stopIntake()
}

// Ingest, for an endpoint and for subscribers, and the handlers that people have themselves. What was there before the
// third turn is there after it.
func TestIngestAndInbox(t *testing.T) {
	w := newWorld(t)
	w.start("tasks", bus.EndpointOptions{}, bus.HandleTx(
		func(ctx *bus.Context, tx pgx.Tx, m task) error { return w.effect(ctx, tx, m.Key, m.N) }))
	const n = 20
	var arrivals []bus.IngestMessage
	for i := range n {
		arrivals = append(arrivals, bus.IngestMessage{ID: uuid.NewString(), Kind: task{}.Kind(),
			Body: fmt.Appendf(nil, `{"Key":"arrived","N":%d}`, i)})
	}
	arrivals = append(arrivals, bus.IngestMessage{ID: "no kind", Kind: "No Kind"})
	received := func(i int) (fresh bool, err error) {
		err = w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			if fresh, err = w.bus.InboxTx(t.Context(), tx, "bank", fmt.Sprint("payment ", i)); err != nil || !fresh {
				return err
			}
			return w.effect(t.Context(), tx, "received", i)
		})
		return fresh, err
	}
	for turn := range 4 {
		for i := range n {
			if fresh, err := received(i); err != nil || fresh != (turn == 0) {
				t.Errorf("payment %d after %d turns: %v, %v", i, turn, fresh, err)
			}
		}
		got, err := w.bus.Ingest(t.Context(), bus.IngestOptions{From: "bank", Endpoint: "tasks"}, arrivals...)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if (turn > 0) != (a.State == bus.Repeated) {
				t.Errorf("message %d after %d turns: %v", i, turn, a)
			}
		}
		if turn < 3 {
			w.turn(ring.Inbox)
		}
	}
	w.awaitEffects(2 * n)
	w.log.explain("message dead-lettered")
}

// turn turns a ring as if it were due.
func (w *world) turn(of ring.Name) {
	w.t.Helper()
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		w.t.Fatal(err)
	}
	rings := ring.New(schema)
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	w.exec("UPDATE :schema.ring SET since = since - keep WHERE name = $1", string(of))
	for turned := false; !turned; {
		if turned, err = rings.Rotate(ctx, w.pool, of); err != nil {
			w.t.Fatal(errors.Join(err, ctx.Err()))
		}
	}
}
