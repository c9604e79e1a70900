package bus_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A function of the user that never returns costs its message an attempt, and no worker: the same process, which has
// one worker, handles the next message while the function still runs.
func TestAFunctionThatNeverReturnsIsLeft(t *testing.T) {
	keyed := func(stand *gate) bus.HandleOption[turn] {
		return bus.KeyedBy(func(m turn) string { stand.pass(); return m.Key })
	}
	for name, c := range map[string]struct {
		options bus.EndpointOptions
		part    func(stand *gate, called func() error) bus.Part
		dead    string // in the error of the dead letter
	}{
		"a handler in a batch": {part: func(stand *gate, called func() error) bus.Part {
			return bus.HandleTx(func(_ *bus.Context, tx pgx.Tx, _ turn) error {
				stand.pass()
				if _, err := tx.Exec(context.Background(), "SELECT 1"); err != nil {
					return err
				}
				return called()
			})
		}, dead: "the handler did not return within StepTimeout"},
		"the key of a saga": {part: func(stand *gate, called func() error) bus.Part {
			return bus.Saga(saga.Define("turns", saga.Options{}, saga.StartedBy(
				func(m turn) string { stand.pass(); return m.Key },
				func(*struct{}, *saga.Context, turn) error { return called() })))
		}, dead: "decoding it, or the state of its instance: a function of the program has not returned"},
		"a leased handler": {part: func(stand *gate, called func() error) bus.Part {
			return bus.Handle(func(*bus.Context, turn) error { stand.pass(); return called() })
		}, dead: "the handler did not return within StepTimeout"},
		"a key in the loop that claims": {options: bus.EndpointOptions{Ordered: bus.Strict,
			Lease: 2 * time.Second, StepTimeout: time.Hour}, part: func(stand *gate, called func() error) bus.Part {
			return bus.Handle(func(*bus.Context, turn) error { return called() }, keyed(stand))
		}, dead: "decoding it: a function of the program has not returned"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			stand, calls := newGate(t), atomic.Int64{}
			part := c.part(stand, func() error { calls.Add(1); return nil })
			o := c.options
			o.StepTimeout = cmp.Or(o.StepTimeout, time.Second)
			o.Concurrency, o.BatchMax, o.Policy = 1, 1, once
			stop := w.start("turns", o, part)
			w.send(turn{Key: "a"})
			await(w, "the function runs", stand.came)
			w.send(turn{Key: "b"})
			w.untilWithin(pgdev.Patience(10*time.Second), "the next message is handled, and the first is dead",
				func() bool { return w.rows("turns") == 0 })
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE position($1 IN error) > 0`, c.dead)
			if n := calls.Load(); n != 1 {
				t.Errorf("%d messages were handled while the function ran, want 1", n)
			}
			w.untilLeft(1)
			stand.open()
			stop()
			if n := strings.Count(log.String(), "edda: a handler does not return, and its worker is replaced"); n != 1 {
				t.Errorf("the log has it %d times\n%s", n, &log)
			}
		})
	}
}

// untilLeft waits until the session has the number of functions that do not return.
func (w *world) untilLeft(want int) {
	w.t.Helper()
	w.until(fmt.Sprintf("the session has %d functions that do not return", want), func() bool {
		return w.count(`SELECT coalesce(sum(n), 0) FROM edda.session, unnest(left_calls) n WHERE ended IS NULL`) == want
	})
}

// A process counts a function of a partitioned endpoint once, and while the function runs.
func TestPartitionsCountALeftFunctionOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	stand, o := newGate(t), soon(2)
	o.Endpoint.StepTimeout, o.Endpoint.Policy = time.Second, once
	p := w.partitioned(w.bus, "turns", o, bus.HandleTx(func(*bus.Context, pgx.Tx, turn) error {
		stand.pass()
		return nil
	}, bus.KeyedBy(func(m turn) string { return m.Key })))
	if err := p.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.runPartitioned(p)
	w.send(turn{Key: "a"})
	await(w, "the function runs", stand.came)
	w.untilLeft(1)
	stand.open()
	w.untilLeft(0)
}

// If a call of a relay never returns, its messages are forwarded once more, and so are the messages behind them.
func TestAForwardThatNeverReturnsIsLeft(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.sendCrossed(3)
	a, stand, told := &abroad{}, newGate(t), make(chan error, 1)
	o := soonRelayed()
	o.Drain = time.Second
	w.runRelay(w.relay(w.bus, o, func(ctx context.Context, all []*saga.Delivery) []error {
		if stand.pass(); ctx.Err() != nil {
			told <- context.Cause(ctx)
		}
		return a.forward(ctx, all)
	}))
	await(w, "forward runs", stand.came)
	w.untilWithin(pgdev.Patience(40*time.Second), "all are relayed", func() bool { return w.rows("border") == 0 })
	w.untilLeft(1)
	stand.open()
	if err := await(w, "the end of the first call", told); err != context.DeadlineExceeded {
		t.Errorf("its context ended with %v", err)
	}
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// A handler that was left, or has ended its goroutine, blocks no transaction and no other message: a slow endpoint,
// which tries one message at a time, tries the next one. When a handler that was left returns, its connection is
// closed, its writes are lost, and its worker ends. The result is the same without LISTEN.
func TestAHandlerThatWasLeftKeepsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		wakeup bus.Wakeup
		exits  bool
	}{"left": {}, "left without LISTEN": {wakeup: bus.PollOnly}, "ended": {exits: true}} {
		t.Run(name, func(t *testing.T) {
			const fails, stands, first, last = 0, 1, 2, 22
			w := newWorldOf(t, bus.Options{Wakeup: c.wakeup},
				func(testing.TB, *pgxpool.Pool, string) string { return "" })
			w.exec(`CREATE TABLE edda.kept (n int)`)
			stand, over, handled := newGate(t), make(chan error, 1), atomic.Int64{}
			w.start("slow", bus.EndpointOptions{BreakerFailures: 1, BreakerPause: time.Millisecond, Concurrency: 1,
				StepTimeout: time.Second, Poll: 10 * time.Millisecond, Policy: once},
				bus.HandleTx(func(_ *bus.Context, tx pgx.Tx, m add) error {
					switch {
					case m.N == fails:
						return errNo
					case m.N > stands:
						handled.Add(1)
						return nil
					}
					_, err := tx.Exec(context.Background(), `INSERT INTO `+w.schema+`.kept VALUES (1)`)
					if c.exits && err == nil {
						runtime.Goexit()
					}
					stand.pass()
					_, late := tx.Exec(context.Background(), `INSERT INTO `+w.schema+`.kept VALUES (2)`)
					over <- late
					return err
				}))
			w.until("the endpoint is slow", func() bool {
				w.send(add{Key: "a", N: fails})
				return len(eventsOf[event.Slowed](w)) > 0
			})
			w.send(add{Key: "a", N: stands})
			w.send(add{Key: "a", N: first})
			w.untilEmpty("slow")
			lost := len(eventsOf[event.BatchFailed](w))
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE error LIKE 'the handler %'`)
			if stand.open(); !c.exits {
				if err := await(w, "the handler returns", over); err == nil {
					t.Error("it has written after its worker was left")
				}
			}
			for range last - first {
				w.send(add{Key: "a", N: first})
			}
			w.untilEmpty("slow")
			w.want(0, `SELECT count(*) FROM edda.kept`)
			if n := handled.Load(); n != last-first+1 {
				t.Errorf("%d messages were handled, want %d", n, last-first+1)
			}
			if now := len(eventsOf[event.BatchFailed](w)); lost != 1 || now != lost {
				t.Errorf("%d batches were lost while the handler ran, and %d in the end, want 1", lost, now)
			}
		})
	}
}
