package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// seldom is for an endpoint that takes messages only when it is woken.
var seldom = bus.EndpointOptions{Poll: time.Hour}

// listen opens a connection that receives the wake-ups of this schema. It returns a function that reads them until a
// wake-up of its own arrives, and returns the backends that sent the others.
func (w *world) listen() (heard func() []uint32) {
	w.t.Helper()
	conn := pgdev.Connect(w.t)
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		w.t.Fatal(err)
	}
	channel := schema.Channel()
	if _, err := conn.Exec(w.t.Context(), "listen "+channel); err != nil {
		w.t.Fatal(err)
	}
	return func() (from []uint32) {
		w.exec(`SELECT pg_notify($1, 'end')`, channel)
		for {
			n, err := conn.WaitForNotification(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			if n.Payload == "end" {
				return from
			}
			from = append(from, n.PID)
		}
	}
}

// A step sends two messages to one queue, the later one first. Workers poll once an hour.
func TestQueueIsWokenForTheFirstOfItsMessages(t *testing.T) {
	w := newWorld(t, bus.Options{})
	done := make(chan int, 2)
	w.start("hears", seldom, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m told) error { done <- m.Sum; return nil }))
	w.start("sends", seldom, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ add) error {
		<-time.After(200 * time.Millisecond) // until the workers of the other endpoint are idle
		ctx.Send(told{Sum: 2}, saga.Delay(time.Hour))
		ctx.Send(told{Sum: 1}, saga.Delay(time.Second))
		return nil
	}))
	w.send(told{})
	await(w, "a first message", done)
	w.send(add{})
	if n := await(w, "the message that is due in a second", done); n != 1 {
		t.Errorf("message %d, want 1", n)
	}
}

// An endpoint that finds no message due reads when the next message is due. Workers poll once an hour.
func TestDelayedMessageOfBeforeTheStartSetsATimer(t *testing.T) {
	w := newWorld(t, bus.Options{})
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil })
	w.install("hears", part)
	w.send(told{}, saga.Delay(3*time.Second))
	w.start("hears", seldom, part)
	w.untilEmpty("hears")
}

// A message becomes due after a take has found no message, and before the same loop reads the next due time. Only the
// timer can wake the loop within the hour.
func TestMessageThatBecomesDueBetweenTwoLooksIsHandled(t *testing.T) {
	t.Parallel()
	inTx := bus.HandleTx(func(*bus.Context, pgx.Tx, crossed) error { return nil })
	do := func(*bus.Context, crossed) error { return nil }
	leased, keyed := bus.Handle(do), bus.Handle(do, bus.KeyedBy(func(m crossed) string { return m.Key }))
	for name, c := range map[string]struct {
		part    bus.Part
		options bus.EndpointOptions
	}{
		"batch": {part: inTx}, "leased": {part: leased},
		"ordered": {part: keyed, options: bus.EndpointOptions{Ordered: bus.Strict}},
		"limited": {part: leased, options: bus.EndpointOptions{ClusterConcurrency: 1}},
		"relay":   {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			c.options.Poll = time.Hour
			if c.part == nil {
				w.installRelay()
			} else {
				w.makeQueue("border")
				if err := w.endpoint("border", c.options, c.part).Install(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			table := w.queue("border")
			w.send(crossed{Key: "k"}, saga.Delay(2*time.Second))
			proxy, dsn := pgtest.Proxy(t)
			b := w.process(dsn, bus.Options{Wakeup: bus.PollOnly})
			proxy.Set(faultproxy.Fault{Statement: "next_due", N: 1, Do: faultproxy.Pause(func() {
				w.until("the message is due", func() bool {
					return w.count(`SELECT count(*) FROM `+table+` WHERE due <= clock_timestamp()`) == 1
				})
			})})
			if c.part == nil {
				w.runRelay(w.relay(b, outbox.RelayOptions{Poll: time.Hour}, (&abroad{}).forward))
			} else {
				w.startOn(b, "border", c.options, c.part)
			}
			w.until("it was looked for in vain", func() bool { return len(proxy.Fired()) > 0 })
			w.untilEmpty("border")
		})
	}
}

// A NOTIFY in the caller's transaction makes Postgres commit all such transactions one at a time.
func TestSendTxDoesNotNotifyInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	for name, inTx := range map[string]bool{"default": false, "NotifyInTx": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{NotifyInTx: inTx})
			w.listener()
			heard := w.listen()
			for way, send := range inPgx {
				tx := w.begin()
				caller := uint32(pgtest.Backend(t, tx))
				if err := send(t.Context(), w.bus, tx); err != nil {
					t.Fatal(err)
				}
				w.commit(tx)
				byCaller, byOthers := 0, 0
				w.until("the wake-up was heard", func() bool {
					for _, pid := range heard() {
						if pid == caller {
							byCaller++
						} else {
							byOthers++
						}
					}
					return byCaller+byOthers > 0
				})
				if inTx != (byCaller > 0) {
					t.Errorf("%s: the caller's own session sent %d wake-ups, others %d", way, byCaller, byOthers)
				}
			}
		})
	}
}

// Each way to send wakes a worker that polls once an hour, in this process and in a second process.
func TestEveryWayToSendWakesAWorker(t *testing.T) {
	t.Parallel()
	ways := map[string]func(w *world, b *bus.Bus) error{
		"Send": func(w *world, b *bus.Bus) error { _, err := b.Send(w.t.Context(), told{}); return err },
		"Send with a delay": func(w *world, b *bus.Bus) error {
			_, err := b.Send(w.t.Context(), told{}, saga.Delay(20*time.Millisecond))
			return err
		},
		"Publish": func(w *world, b *bus.Bus) error { _, err := b.Publish(w.t.Context(), told{}); return err },
		"SendTx": func(w *world, b *bus.Bus) error {
			tx := w.begin()
			if _, err := b.SendTx(w.t.Context(), tx, told{}); err != nil {
				return err
			}
			return tx.Commit(w.t.Context())
		},
		"InTx": func(w *world, b *bus.Bus) error {
			return b.InTx(w.t.Context(), func(tx pgx.Tx) error {
				_, err := b.SendTx(w.t.Context(), tx, told{})
				return err
			})
		},
		"InTx after a long time": func(w *world, b *bus.Bus) error {
			return b.InTx(w.t.Context(), func(tx pgx.Tx) error {
				_, err := b.SendTx(w.t.Context(), tx, told{})
				begun := w.text(`SELECT clock_timestamp()::text`)
				w.until("all wake-ups that SendTx has planned are over", func() bool {
					return w.count(`SELECT count(*)
						WHERE clock_timestamp() > $1::text::timestamptz + interval '150 ms'`, begun) == 1
				})
				return err
			})
		},
	}
	for name, send := range ways {
		for _, where := range []string{"here", "elsewhere"} {
			if name == "Send with a delay" && where == "elsewhere" {
				continue // the other process polls for it
			}
			t.Run(name+" "+where, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				got := make(chan bool, 1)
				part := bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { got <- true; return nil })
				w.start("wakes", seldom, part)
				sender := w.bus
				if where == "elsewhere" {
					sender = w.process(pgdev.DSN(t), bus.Options{})
				}
				// The worker is idle, and listens, when it has handled one message of the other process.
				other := w.process(pgdev.DSN(t), bus.Options{})
				w.untilListening(1)
				if _, err := other.Send(t.Context(), told{}); err != nil {
					t.Fatal(err)
				}
				await(w, "the first message", got)
				w.until("the worker is idle", func() bool { return len(eventsOf[event.BatchDone](w)) > 0 })
				if err := send(w, sender); err != nil {
					t.Fatal(err)
				}
				await(w, "the message", got)
			})
		}
	}
}

// Workers begin behind the last message that their process took. A transaction that commits later, with an earlier due
// time, is below that mark, and is found while the other messages are handled.
func TestLateCommitBelowTheCursorIsFound(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var late atomic.Bool
	var handled atomic.Int64
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error {
		if m.Key == "late" {
			late.Store(true)
		}
		handled.Add(1)
		return nil
	})
	w.install("flows", part)
	tx := w.begin()
	if _, err := w.bus.SendTx(t.Context(), tx, add{Key: "late"}); err != nil {
		t.Fatal(err)
	}
	w.start("flows", bus.EndpointOptions{Concurrency: 2, BatchMax: 4, Poll: time.Hour}, part)
	fill := func() {
		w.exec(`INSERT INTO ` + w.queue("flows") + ` (due, id, kind, header, body)
			SELECT clock_timestamp(), gen_random_uuid(), 'tally.add', '{}', '{}' FROM generate_series(1, 200)`)
		w.send(add{Key: "more"})
	}
	fill()
	w.until("it flows", func() bool { return handled.Load() > 50 })
	w.commit(tx)
	w.until("the late one is handled", func() bool {
		if w.rows("flows") < 100 {
			fill()
		}
		return late.Load()
	})
}

// A shutdown during a batch lets it end: no message is lost or handled twice, and Run returns nil.
func TestShutdownDuringABatchLosesNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.ledger()
	g := newGate(t)
	part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
		if err := w.note(ctx, tx, m.N); err != nil {
			return err
		}
		g.pass()
		return nil
	})
	w.fill("notes", part, 1, 2, 3, 4, 5)
	ctx, cancel := context.WithCancel(t.Context())
	e := w.endpoint("notes", bus.EndpointOptions{Concurrency: 1}, part)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	await(w, "the first step", g.came)
	cancel()
	g.open()
	if err := await(w, "the end", ended); err != nil {
		t.Errorf("%v, want a clean drain", err)
	}
	if handled, left := w.count(`SELECT count(*) FROM edda.ledger`), w.rows("notes"); handled+left != 5 ||
		handled == 0 {
		t.Errorf("%d handled and %d left, want 5 together and the batch done", handled, left)
	}
	w.run(e)
	w.untilEmpty("notes")
	if got := w.noted(); got != "1 2 3 4 5" {
		t.Errorf("noted %q, want each once", got)
	}
}

// A handler that does not end is cancelled when the drain is over. Its message stays in the queue, with no attempt
// counted.
func TestDrainCancelsSlowHandlers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"handler", "saga"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			came := make(chan bool, 1)
			wait := func(ctx context.Context) error {
				select {
				case came <- true:
				default: // it is called a second time, which the rows will show
				}
				<-ctx.Done()
				return ctx.Err()
			}
			part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error { return wait(ctx) })
			if kind == "saga" {
				part = bus.Saga(saga.Define("tally", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
					func(_ *tally, ctx *saga.Context, _ add) error { return wait(ctx) })))
			}
			w.fill("slow", part, 1)
			e := w.endpoint("slow", bus.EndpointOptions{Drain: 10 * time.Millisecond}, part)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			await(w, "the handler", came)
			cancel()
			if err := await(w, "the end", ended); !errors.Is(err, bus.ErrDrain) {
				t.Errorf("%v, want ErrDrain", err)
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("slow")+` WHERE attempt = 0 AND first_failed IS NULL`)
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		})
	}
}

func TestOneRunAtATime(t *testing.T) {
	w := newWorld(t, bus.Options{})
	e := w.install("once", bus.HandleTx(hears))
	w.run(e)
	w.send(shipped{})
	w.untilEmpty("once")
	if err := e.Run(t.Context()); !errors.Is(err, bus.ErrRunning) {
		t.Errorf("%v, want ErrRunning", err)
	}
}
