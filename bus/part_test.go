package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type addV1 struct{ Name string }
type addV2 struct{ Key, Number string }

func (addV1) Kind() string { return "tally.add.v1" }
func (addV2) Kind() string { return "tally.add.v2" }

func oneToTwo(m addV1) (addV2, error) { return addV2{Key: m.Name, Number: "5"}, nil }

func twoToNow(m addV2) (add, error) {
	n := 0
	_, err := fmt.Sscan(m.Number, &n)
	return add{Key: m.Key, N: n}, err
}

// A kind was renamed twice, so it has two Accepts. The kind in the middle had no handler, and the process died.
func TestAcceptsFollowEachOther(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.start("tallies", bus.EndpointOptions{}, bus.Saga(tallies(saga.Pessimistic, nil)), bus.Accept(twoToNow),
		bus.Accept(oneToTwo))
	w.send(addV1{Name: "a"})
	w.send(addV2{Key: "a", Number: "6"})
	w.send(add{Key: "a", N: 7})
	w.send(addV2{Key: "a", Number: "six"})
	w.untilEmpty("tallies")
	if got := w.sum("a"); got != 18 {
		t.Errorf("the sum is %d, want 18", got)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent' AND kind = 'tally.add.v2'
		AND convert_from(body, 'UTF8') = '{"Key":"a","Number":"six"}'`)
}

func TestAcceptsInACircleAreRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	_, err := bus.NewEndpoint(w.bus, "circle", bus.EndpointOptions{},
		bus.Accept(oneToTwo), bus.Accept(func(addV2) (addV1, error) { return addV1{}, nil }))
	if err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("%v, want an error about a circle", err)
	}
}

// tracing records when a message passes it.
func tracing(trace *[]string, name string) bus.Middleware {
	return func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			*trace = append(*trace, name+" in")
			err := next(ctx, d)
			*trace = append(*trace, name+" out")
			return err
		}
	}
}

func TestMiddlewareRunsInTheOrderGiven(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var trace []string // by the one worker
	type value struct{}
	handled := func(ctx context.Context) { trace = append(trace, fmt.Sprint(ctx.Value(value{}))) }
	inner := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			return next(context.WithValue(ctx, value{}, d.Info.Kind), d)
		}
	}
	stop := w.start("traced", bus.EndpointOptions{Concurrency: 1},
		bus.Use(tracing(&trace, "a"), tracing(&trace, "b")), bus.Use(inner),
		bus.Saga(saga.Define("tally", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
			func(_ *tally, ctx *saga.Context, _ add) error { handled(ctx); return nil }))),
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ paid) error { handled(ctx); return nil }))
	w.send(add{Key: "a"})
	w.untilEmpty("traced")
	w.send(paid{})
	w.untilEmpty("traced")
	stop()
	want := "a in, b in, tally.add, b out, a out, a in, b in, card.paid, b out, a out"
	if got := strings.Join(trace, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An error of a middleware, after its handler succeeded, undoes the step: its state, its writes and its sends.
func TestMiddlewareUndoesAStep(t *testing.T) {
	t.Parallel()
	again := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if err := next(ctx, d); err != nil {
				return err
			}
			return next(ctx, d)
		}
	}
	after := func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			if err := next(ctx, d); err != nil {
				return err
			}
			return errors.New("no")
		}
	}
	for name, m := range map[string]bus.Middleware{"an error after it": after, "next twice": again} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			w.ledger()
			w.start("undone", bus.EndpointOptions{Policy: once}, bus.Use(m), bus.Saga(tallies(saga.Pessimistic, nil)),
				bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ paid) error {
					ctx.Send(told{})
					return w.note(ctx, tx, 1)
				}))
			w.send(add{Key: "a", N: 1})
			w.send(paid{})
			w.untilEmpty("undone")
			w.want(2, `SELECT count(*) FROM edda.dead_letter`)
			w.want(0, `SELECT (SELECT count(*) FROM edda.saga) + (SELECT count(*) FROM edda.ledger) + (SELECT `+
				`count(*) FROM `+w.queue("listener")+`)`)
		})
	}
}

// NewEndpoint reports every fault of an endpoint at once, before the first message.
func TestFaultsOfAnEndpointAreToldAtOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	_, err := bus.NewEndpoint(w.bus, "Bad Name", bus.EndpointOptions{Concurrency: -1, BatchMax: 61, Poll: -1},
		nil,
		bus.HandleTx[add](nil),
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }),
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }),
		bus.Accept(oneToTwo),
		bus.Use(nil),
		bus.Saga(nil),
		bus.Saga(saga.Define[tally]("tally", saga.Options{})),
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"Bad Name"`, "Concurrency is -1", "BatchMax is 61, want 0 to 60", "Poll is -1", "part 1 is nil",
		"HandleTx of tally.add: the handler is nil", "kind tally.add has two consumers",
		"nothing in the endpoint handles tally.add.v2",
		"a middleware is nil", "a saga definition is nil", `saga "tally"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error:\n%v", want, err)
		}
	}
	if _, err := bus.NewEndpoint(w.bus, "empty", bus.EndpointOptions{}); err == nil ||
		!strings.Contains(err.Error(), "handles no message") {
		t.Errorf("%v", err)
	}
}
