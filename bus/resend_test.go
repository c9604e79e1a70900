package bus_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A program that retries, and ends a moment later, has woken workers of other processes, whose next poll is in an hour.
func TestRetriesWakeTheWorkersOfOtherProcesses(t *testing.T) {
	t.Parallel()
	ways := map[string]func(ctx context.Context, o *operate.Operator) error{
		"one": func(ctx context.Context, o *operate.Operator) error {
			return o.DeadLetters().Retry(ctx, 1)
		},
		"edited": func(ctx context.Context, o *operate.Operator) error {
			return o.DeadLetters().Edit(ctx, 1, recoverability.Edit{Body: []byte(`{"N":2}`)})
		},
		"a job": func(ctx context.Context, o *operate.Operator) error {
			number, err := o.DeadLetters().NewJob(ctx, recoverability.Job{Action: recoverability.JobRetry})
			if err == nil {
				_, err = o.DeadLetters().RunJob(ctx, number, nil)
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
			w.must(retry(ctx, dying))
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
