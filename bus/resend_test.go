package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A program that retries, and ends a moment later, has woken workers of other processes, whose next poll is in an hour.
func TestRetriesWakeTheWorkersOfOtherProcesses(t *testing.T) {
	t.Parallel()
	ways := map[string]func(ctx context.Context, w *world, o *operate.Operator) error{
		"one": func(ctx context.Context, w *world,
			o *operate.Operator) error {
			return o.DeadLetters().Retry(ctx, w.pool, o, 1)
		},
		"edited": func(ctx context.Context, w *world, o *operate.Operator) error {
			return o.DeadLetters().Edit(ctx, w.pool, o, 1, deadletter.Edit{Body: []byte(`{"N":2}`)})
		},
		"a job": func(ctx context.Context, w *world, o *operate.Operator) error {
			number, err := o.DeadLetters().NewJob(ctx, w.pool, deadletter.Job{Action: deadletter.ActionRetry})
			if err == nil {
				_, err = o.DeadLetters().RunJob(ctx, w.pool, o, number, nil)
			}
			return err
		},
	}
	for name, retry := range ways {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			var fixed atomic.Bool
			got := make(chan saga.Info, 10)
			w.start("fails", bus.EndpointOptions{Policy: once, Poll: time.Hour},
				bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ add) error {
					if !fixed.Load() {
						return errNo
					}
					got <- ctx.Info()
					return nil
				}))
			w.untilListening(1)
			w.send(add{N: 1})
			w.untilEmpty("fails")
			fixed.Store(true)
			// A separate process, which is over as soon as the call has returned: later work does not count.
			ctx, over := context.WithCancel(t.Context())
			dying := w.operatorOf(w.openPool(pgdev.DSN(t)))
			heard := w.listen()
			w.must(retry(ctx, w, dying))
			over()
			if len(heard()) == 0 {
				t.Error("nobody was told")
			}
			if info := await(w, "the message", got); info.Attempt != 1 {
				t.Errorf("attempt %d, want 1", info.Attempt)
			}
		})
	}
}

// Letters of several endpoints are sent again in their order, all of them or none.
func TestResendIsAllOrNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	ignore := bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil })
	w.install("a", ignore)
	w.install("b", ignore)
	var letters []deadletter.Letter
	for n := range 5 {
		letters = append(letters, deadletter.Letter{Endpoint: []string{"a", "b"}[n%2], MessageID: saga.ID{byte(n + 1)},
			Kind: "tally.add", Header: []byte("{}")})
	}
	err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
		err := w.operator().Resend(t.Context(), tx, append(letters, deadletter.Letter{Endpoint: "nowhere"})...)
		if !errors.Is(err, deadletter.ErrUndeliverable) || !errors.Is(err, bus.ErrNoRoute) {
			t.Errorf("%v, want ErrUndeliverable and ErrNoRoute", err)
		}
		if n := w.rows("a") + w.rows("b"); n != 0 {
			t.Errorf("%d letters were sent", n)
		}
		return w.operator().Resend(t.Context(), tx, letters...)
	})
	w.must(err)
	w.want(3, `SELECT count(*) FROM `+w.queue("a")+` WHERE due <= clock_timestamp()`)
	w.wantText("01 03 05", `SELECT string_agg(left(id::text, 2), ' ' ORDER BY due, id) FROM `+w.queue("a"))
	w.wantText("02 04", `SELECT string_agg(left(id::text, 2), ' ' ORDER BY due, id) FROM `+w.queue("b"))
}
