package bus_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A middleware got the message itself and not a copy: its changes of the body were in the queue and in the dead letter
// afterwards, and the next attempt changed them once more. The handler of a saga read them from the second attempt on.
func TestMiddlewareChangesWhatTheHandlerSees(t *testing.T) {
	t.Parallel()
	middleware := map[string]bus.Middleware{
		"writes into the body": func(next bus.Handler) bus.Handler {
			return func(ctx context.Context, d *saga.Delivery) error {
				d.Body[bytes.IndexByte(d.Body, '1')]++
				return next(ctx, d)
			}
		},
		"replaces the body": func(next bus.Handler) bus.Handler {
			return func(ctx context.Context, d *saga.Delivery) error {
				d.Body = bytes.ReplaceAll(d.Body, []byte("1"), []byte("2"))
				return next(ctx, d)
			}
		},
	}
	for name, m := range middleware {
		for kind := range handlersThatFail(nil) {
			t.Run(kind+" "+name, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				seen := &numbersSeen{}
				w.start("changed", bus.EndpointOptions{Policy: func(f recoverability.Failure) recoverability.Decision {
					if f.Info.Attempt < 3 {
						return recoverability.RetryNow()
					}
					return recoverability.DeadLetter()
				}}, handlersThatFail(seen)[kind], bus.Use(m))
				w.raw("tally.add", `{"Key":"a","N":1}`, `{}`, "changed")
				w.untilEmpty("changed")
				w.wantText(`{"Key":"a","N":1} 3 no`,
					`SELECT convert_from(body, 'UTF8') || ' ' || attempts || ' ' || error FROM edda.dead_letter`)
				if got := seen.all(); !slices.Equal(got, []int{2, 2, 2}) {
					t.Errorf("the handler saw %v in its attempts, want what the middleware made of 1: 2", got)
				}
			})
		}
	}
}

// handlersThatFail has every kind of handler that gets the bytes or the decoded message.
func handlersThatFail(s *numbersSeen) map[string]bus.Part {
	return map[string]bus.Part{
		"HandleTx": bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m add) error { return s.see(m.N) }),
		"Handle":   bus.Handle(func(_ *bus.Context, m add) error { return s.see(m.N) }),
		"HandleRaw": bus.HandleRaw(func(_ *bus.Context, d *saga.Delivery) error {
			n := int(d.Body[bytes.IndexAny(d.Body, "123456")] - '0')
			clear(d.Body)
			return s.see(n)
		}, "tally.add"),
		"Saga": bus.Saga(saga.Define("changed", saga.Options{}, saga.StartedBy(func(m add) string { return m.Key },
			func(_ *tally, _ *saga.Context, m add) error { return s.see(m.N) }))),
	}
}

type numbersSeen struct {
	mu      sync.Mutex
	numbers []int
}

func (s *numbersSeen) see(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers = append(s.numbers, n)
	return errors.New("no")
}

func (s *numbersSeen) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.numbers)
}

// A raw handler has a copy as well.
func TestRawHandlerMayWriteIntoTheBody(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("raw", bus.EndpointOptions{Policy: once}, handlersThatFail(&numbersSeen{})["HandleRaw"])
	w.raw("tally.add", `{"Key":"a","N":1}`, `{}`, "raw")
	w.untilEmpty("raw")
	w.wantText(`{"Key":"a","N":1}`, `SELECT convert_from(body, 'UTF8') FROM edda.dead_letter`)
}
