package bus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

func hears(*bus.Context, pgx.Tx, shipped) error { return nil }

// relay publishes one event for each message that it handles.
func relay() bus.Part {
	return bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m add) error {
		ctx.Publish(shipped{Order: fmt.Sprint(m.N)})
		return nil
	})
}

// An event that was published after a subscription had committed missed it, until the publisher's list of subscribers
// was read again. Every way to publish is tried here, each in a separate process whose list is old.
func TestSubscriberMissesNothingAfterInstall(t *testing.T) {
	w := newWorld(t, bus.Options{})
	alone, inTx, relays := w.process(pgdev.DSN(t), bus.Options{}), w.process(pgdev.DSN(t), bus.Options{}),
		w.process(pgdev.DSN(t), bus.Options{})
	w.install("first", bus.HandleTx(hears))
	w.startOn(relays, "relay", bus.EndpointOptions{}, relay())
	published := func(n int) { // by processes that each read its list before the second subscriber came
		if _, err := alone.Publish(t.Context(), shipped{Order: "publish"}); err != nil {
			t.Fatal(err)
		}
		tx := w.begin()
		if _, err := inTx.PublishTx(t.Context(), tx, shipped{Order: "publish in tx"}); err != nil {
			t.Fatal(err)
		}
		w.commit(tx)
		w.send(add{N: n})
		w.untilEmpty("relay")
	}
	published(1)
	w.want(3, `SELECT count(*) FROM `+w.queue("first"))
	w.install("second", bus.HandleTx(hears))
	published(2)
	w.want(6, `SELECT count(*) FROM `+w.queue("first"))
	w.want(3, `SELECT count(*) FROM `+w.queue("second"))
}

// The same while events are published without a pause: the number of the first event that the subscriber gets is not
// greater than the next number when its install returned, and from there on no event is missing.
func TestSubscriberOfABusyPublisherMissesNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var next atomic.Int64
	publisher := w.process(pgdev.DSN(t), bus.Options{})
	w.startOn(publisher, "relay", bus.EndpointOptions{Concurrency: 2, BatchMax: 5}, relay())
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		for ctx.Err() == nil {
			n := next.Add(1)
			if _, err := w.bus.Publish(context.WithoutCancel(ctx), shipped{Order: fmt.Sprint(n)}); err != nil {
				t.Error(err)
				return
			}
			if n%5 == 0 {
				if _, err := w.bus.Send(context.WithoutCancel(ctx), add{N: int(-n)}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	after := map[string]int64{}
	for n := range 4 {
		name := fmt.Sprint("late-", n)
		e, err := bus.NewEndpoint(w.process(pgdev.DSN(t), bus.Options{}), name, bus.EndpointOptions{},
			bus.HandleTx(hears))
		if err != nil {
			t.Fatal(err)
		}
		w.makeQueue(name)
		if err := e.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		after[name] = next.Load()
		w.until("events go on", func() bool { return next.Load() > after[name]+20 })
	}
	cancel()
	sending.Wait()
	w.untilEmpty("relay")
	last := next.Load()
	for name, begin := range after {
		// begin itself may have been on its way when the install returned; every later event must be there.
		got := w.count(`SELECT count(*) FROM `+w.queue(name)+
			` WHERE (convert_from(body, 'UTF8')::json ->> 'Order')::int > $1`, begin)
		if want := int(last - begin); got != want {
			t.Errorf("%s has %d of the %d events after its install", name, got, want)
		}
	}
}

// A transaction with one snapshot for all its statements cannot read a subscriber that came after it began. It must not
// publish without that subscriber.
func TestOldSnapshotDoesNotPublishPastASubscriber(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("first", bus.HandleTx(hears))
	tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	w.execTx(tx, `SELECT count(*) FROM edda.queue`) // its snapshot is taken
	w.install("second", bus.HandleTx(hears))
	_, err = w.bus.PublishTx(t.Context(), tx, shipped{Order: "7"})
	if err == nil {
		err = tx.Commit(t.Context())
	} else {
		_ = tx.Rollback(t.Context())
	}
	if n := w.rows("second"); err == nil && n != 1 {
		t.Errorf("the event was published past the second subscriber")
	}
}

// A second process installs an endpoint. A step of the first process that sends to it reads the routes again.
func TestStepSendsToAnEndpointThatWasInstalledSince(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]bus.Part{
		"in a transaction": bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m add) error {
			ctx.Send(told{Sum: m.N}, saga.To(m.Key))
			return nil
		}),
		"leased": bus.Handle(func(ctx *bus.Context, m add) error {
			ctx.Send(told{Sum: m.N}, saga.To(m.Key))
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			w.start("asks", bus.EndpointOptions{Policy: once}, part)
			w.send(add{Key: "listener", N: 1})
			w.until("it has sent", func() bool { return w.rows("listener") == 1 })
			late, err := bus.NewEndpoint(w.process(pgdev.DSN(t), bus.Options{}), "late", bus.EndpointOptions{},
				bus.HandleTx(hears))
			w.must(err)
			w.makeQueue("late")
			w.must(late.Install(t.Context()))
			w.send(add{Key: "late", N: 2})
			w.untilEmpty("asks")
			w.want(1, `SELECT count(*) FROM `+w.queue("late"))
		})
	}
}

// A batch used a list of subscribers that a concurrent send had discarded, and the process died.
func TestForgottenRoutesAreReadAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("relay", bus.EndpointOptions{}, relay())
	w.raw("tally.add", `{"N":1}`, `{}`, "relay")
	w.untilEmpty("relay")                      // it has begun, which reads the routes
	w.install("listener", bus.HandleTx(hears)) // by the same bus, which forgets its routes
	w.raw("tally.add", `{"N":7}`, `{}`, "relay")
	w.untilEmpty("relay")
	w.want(1, `SELECT count(*) FROM `+w.queue("listener"))
}

// A subscriber waits for transactions that are publishing, in short pieces, and does not stop other publishers.
func TestOpenPublisherDelaysTheSubscriberOnly(t *testing.T) {
	w := newWorld(t, bus.Options{})
	tx := w.begin()
	if sent, err := w.bus.PublishTx(t.Context(), tx, shipped{Order: "1"}); err != nil || sent.Copies != 0 {
		t.Fatal(sent, err)
	}
	e := w.endpoint("late", bus.EndpointOptions{}, bus.HandleTx(hears))
	w.makeQueue(e.Name())
	installed := make(chan error, 1)
	go func() { installed <- e.Install(t.Context()) }()
	w.untilWaiting("lock_subscriptions")
	if _, err := w.bus.Publish(t.Context(), shipped{Order: "2"}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-installed:
		t.Fatalf("install returned while a transaction was publishing: %v", err)
	default:
	}
	w.commit(tx)
	if err := await(w, "the install", installed); err != nil {
		t.Fatal(err)
	}
	w.send(shipped{Order: "3"})
	w.want(1, `SELECT count(*) FROM `+w.queue("late"))
}

// The queue of an endpoint was dropped while publishers had it in their routes: their batches failed again and again.
func TestDroppedQueueDoesNotPoisonThePublisher(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]string{
		"with its entry": `DELETE FROM edda.queue WHERE endpoint = 'gone'`,
		"by hand":        `SELECT 1`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.install("stays", bus.HandleTx(hears))
			w.install("gone", bus.HandleTx(hears))
			w.start("relay", bus.EndpointOptions{}, relay())
			w.send(add{N: 1})
			w.untilEmpty("relay")
			table := w.queue("gone")
			w.exec(drop)
			w.exec(`DROP TABLE ` + table)
			w.send(add{N: 2})
			w.untilEmpty("relay")
			if _, err := w.bus.Publish(t.Context(), shipped{Order: "3"}); err != nil {
				t.Error(err)
			}
			w.want(3, `SELECT count(*) FROM `+w.queue("stays"))
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		})
	}
}

// An endpoint unsubscribes: the messages in its queue are still there when it subscribes again.
func TestUnsubscribedEndpointGetsNoCopy(t *testing.T) {
	w := newWorld(t, bus.Options{})
	e := w.install("listener", bus.HandleTx(hears))
	if sent, err := w.bus.Publish(t.Context(), shipped{}); err != nil || sent.Copies != 1 {
		t.Errorf("%+v %v", sent, err)
	}
	if err := e.Unsubscribe(t.Context(), shipped{}.Kind()); err != nil {
		t.Fatal(err)
	}
	if sent, err := w.bus.Publish(t.Context(), shipped{}); err != nil || sent.Copies != 0 {
		t.Errorf("%+v %v", sent, err)
	}
	w.run(e)
	w.untilEmpty("listener")
	if sent, err := w.bus.Publish(t.Context(), shipped{}); err != nil || sent.Copies != 1 {
		t.Errorf("%+v %v", sent, err)
	}
	w.until("both events are handled", func() bool { return len(eventsOf[event.Handled](w)) == 2 })
}
