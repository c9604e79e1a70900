//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Each way to send, some of it rolled back, and the same ids twice.
func TestEachWayToSend(t *testing.T) {
	w := newWorld(t)
	do := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error { return w.effect(ctx, tx, m.Key, m.N) })
	w.start("tasks", bus.EndpointOptions{}, do)
	db := stdlib.OpenDBFromPool(w.pool)
	defer db.Close()
	give := func(i int) {
		ctx, id := t.Context(), saga.ID(uuid.New())
		for range 2 { // the second is a duplicate
			w.send(task{Key: "send", N: i}, saga.WithID(id))
		}
		if _, err := w.bus.Publish(ctx, task{Key: "publish", N: i}); err != nil {
			t.Fatal(err)
		}
		for _, fails := range []error{nil, errors.New("rolled back")} {
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				_, err := w.bus.SendTx(ctx, tx, task{Key: "tx", N: i})
				return errors.Join(err, fails)
			})
			if !errors.Is(err, fails) {
				t.Fatal(err)
			}
			if err := w.bus.InTx(ctx, func(tx pgx.Tx) error {
				_, err := w.bus.PublishTx(ctx, tx, task{Key: "in tx", N: i})
				return errors.Join(err, fails)
			}); !errors.Is(err, fails) {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.bus.SendSQL(ctx, tx, task{Key: "sql", N: i})
			if fails == nil {
				err = errors.Join(err, tx.Commit())
			} else {
				err = errors.Join(err, tx.Rollback())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const n = 20
	for i := range n {
		give(i)
	}
	w.awaitEffects(5 * n)
}

// Watermill's Publisher and Subscriber, with a group of events beside a queue; every fourth message is refused once.
func TestWatermill(t *testing.T) {
	w := newWorld(t)
	publisher, err := watermill.NewPublisher(w.bus, watermill.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := watermill.NewSubscriber(w.bus, watermill.SubscriberOptions{Poll: quickly})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages, err := subscriber.Subscribe(ctx, "letters")
	if err != nil {
		t.Fatal(err)
	}
	const n = 60
	for i := range n {
		if err := publisher.Publish("letters",
			message.NewMessage(uuid.NewString(), fmt.Appendf(nil, "%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	refused, got := map[string]bool{}, map[string]int{}
	for len(got) < n {
		m, open := <-messages
		if !open {
			t.Fatalf("the channel closed after %d messages", len(got))
		}
		if len(got)%4 == 3 && !refused[m.UUID] {
			refused[m.UUID] = true
			m.Nack()
			continue
		}
		got[string(m.Payload)]++
		m.Ack()
	}
	w.awaitRest()
	if err := errors.Join(subscriber.Close(), publisher.Close()); err != nil {
		t.Error(err)
	}
	for payload, times := range got {
		if times != 1 {
			t.Errorf("message %s was received %d times", payload, times)
		}
	}
}
