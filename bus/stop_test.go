package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// stubborn is an endpoint of any type, with a handler that ignores the end of its context.
type stubborn interface {
	Run(ctx context.Context) error
}

// stubbornKinds returns how to make each type of endpoint over a bus, and its first message. call is the handler.
func stubbornKinds(w *world, call func()) map[string]func(b *bus.Bus) (stubborn, saga.Message) {
	must := func(r stubborn, err error) stubborn {
		if err != nil {
			w.t.Fatal(err)
		}
		return r
	}
	inTx := func(*bus.Context, pgx.Tx, turn) error { call(); return nil }
	// StepTimeout is so long that Postgres does not end the transaction by itself
	o := bus.EndpointOptions{Drain: time.Second, StepTimeout: 4 * time.Minute}
	return map[string]func(b *bus.Bus) (stubborn, saga.Message){
		"batch": func(b *bus.Bus) (stubborn, saga.Message) {
			return must(bus.NewEndpoint(b, "stubborn", o, bus.HandleTx(inTx))), turn{Key: "a"}
		},
		"leased": func(b *bus.Bus) (stubborn, saga.Message) {
			handler := bus.Handle(func(*bus.Context, turn) error { call(); return nil })
			leased := o
			leased.Lease = time.Second
			return must(bus.NewEndpoint(b, "stubborn", leased, handler)), turn{Key: "a"}
		},
		"partitioned": func(b *bus.Bus) (stubborn, saga.Message) {
			all := soon(2)
			all.Endpoint = o
			return must(bus.NewPartitioned(b, "stubborn", all, bus.HandleTx(inTx,
				bus.KeyedBy(func(m turn) string { return m.Key })))), turn{Key: "a"}
		},
		"relay": func(b *bus.Bus) (stubborn, saga.Message) {
			all := soonRelayed()
			all.Drain, all.Lease = o.Drain, 2*time.Second
			return must(bus.NewRelay(b, "stubborn", all, func(context.Context, []*saga.Delivery) []error {
				call()
				return nil
			}, crossed{}.Kind())), crossed{}
		},
	}
}

// A stop does not wait for a handler that never returns: Run names it in its error, a different process handles its
// message, and until the handler returns a second Run is refused.
func TestRunEndsWithoutAHandlerThatNeverReturns(t *testing.T) {
	for _, kind := range []string{"batch", "leased", "partitioned", "relay"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorldOf(t, bus.Options{}, func(testing.TB, *pgxpool.Pool, string) string { return "" })
			stand, called := newGate(t), make(chan struct{}, 10)
			of := stubbornKinds(w, func() { stand.pass(); called <- struct{}{} })[kind]
			r, first := of(w.bus)
			if err := r.(interface{ Install(context.Context) error }).Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.send(first)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			await(w, "the handler runs", stand.came)
			stop()
			err := await(w, "the end of Run", ended)
			named := map[bool]string{true: "forward for ", false: "turn.take "}[kind == "relay"]
			if !errors.Is(err, bus.ErrDrain) || !strings.Contains(err.Error(), "and not waited for: "+named) {
				t.Errorf("Run returned %v", err)
			}
			w.want(0, `SELECT count(*) FROM edda.session WHERE ended IS NULL`)
			if err := r.Run(t.Context()); !errors.Is(err, bus.ErrRunning) {
				t.Errorf("another Run, while the handler runs: %v", err)
			}
			other, _ := of(w.process(pgdev.DSN(t), bus.Options{}))
			next, end := context.WithCancel(t.Context())
			otherEnded := make(chan error, 1)
			go func() { otherEnded <- other.Run(next) }()
			await(w, "another process handles the message", called)
			end()
			if err := <-otherEnded; err != nil {
				t.Error(err)
			}
			stand.open()
			over, cancel := context.WithCancel(t.Context())
			cancel()
			w.until("the handler has returned", func() bool { return !errors.Is(r.Run(over), bus.ErrRunning) })
		})
	}
}
