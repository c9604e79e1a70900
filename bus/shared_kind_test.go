package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

type (
	openLeft  struct{ Key string }
	openRight struct{ Key string }
	rung      struct{}
	doubt     struct{}
	comfort   struct{ Text string }
)

func (openLeft) Kind() string  { return "shared.open_left" }
func (openRight) Kind() string { return "shared.open_right" }
func (rung) Kind() string      { return "shared.rung" }
func (doubt) Kind() string     { return "shared.question" }
func (comfort) Kind() string   { return "shared.reply" }

type (
	left  struct{ Rung, Told int }
	right struct{ Told, Rung int }
)

// twoSagas share a kind of timeout and a kind of answer.
func twoSagas(l, r saga.Store) []bus.Part {
	return []bus.Part{
		bus.Saga(saga.Define("left", saga.Options{Store: l},
			saga.StartedBy(func(m openLeft) string { return m.Key }, func(_ *left, c *saga.Context, _ openLeft) error {
				c.Timeout(10*time.Millisecond, rung{})
				c.Send(doubt{})
				return nil
			}),
			saga.OnTimeout(func(s *left, _ *saga.Context, _ rung) error { s.Rung++; return nil }),
			saga.OnReply(func(s *left, _ *saga.Context, _ comfort) error { s.Told++; return nil }))),
		bus.Saga(saga.Define("right", saga.Options{Store: r},
			saga.StartedBy(func(m openRight) string { return m.Key },
				func(_ *right, c *saga.Context, _ openRight) error {
					c.Timeout(10*time.Millisecond, rung{})
					c.Send(doubt{})
					return nil
				}),
			saga.OnTimeout(func(s *right, _ *saga.Context, _ rung) error { s.Rung++; return nil }),
			saga.OnReply(func(s *right, _ *saga.Context, _ comfort) error { s.Told++; return nil }))),
	}
}

// Two sagas of one endpoint could not share a kind of timeout or of answer, though such a message names its instance.
func TestSagasShareTimeoutsAndAnswers(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		w.start("answers", bus.EndpointOptions{}, bus.HandleRaw(func(c *bus.Context, _ *saga.Delivery) error {
			c.Reply(comfort{Text: "yes"})
			return nil
		}, "shared.question"))
		w.start("shared", bus.EndpointOptions{}, twoSagas(store, saga.Pessimistic)...)
		const n = 10
		for i := range n {
			w.send(openLeft{Key: fmt.Sprint(i)})
			w.send(openRight{Key: fmt.Sprint(i)})
		}
		w.until("all have heard both", func() bool {
			return w.count(`SELECT count(*) FROM edda.saga WHERE state ->> 'Rung' = '1'
				AND state ->> 'Told' = '1'`) == 2*n
		})
		w.want(0, `SELECT (SELECT count(*) FROM edda.dead_letter) + (SELECT count(*) FROM edda.discarded)`)
	})
}

// A message for an instance that is gone finds no instance. If the instance belongs to a saga that does not handle the
// message, the instance and its other messages are not affected.
func TestMessageForAnInstanceOfAnotherSaga(t *testing.T) {
	w := newWorld(t, bus.Options{})
	parts := append(twoSagas(saga.Pessimistic, saga.Pessimistic), bus.Saga(saga.Define("both", saga.Options{},
		saga.StartedBy(func(m add) string { return m.Key }, func(*both, *saga.Context, add) error { return nil }),
		saga.OnReply(func(s *both, _ *saga.Context, _ told) error { s.ByID++; return nil }))))
	stop := w.start("shared", bus.EndpointOptions{}, parts...)
	w.send(add{Key: "a", N: 1})
	w.untilEmpty("shared")
	stop()
	to := func(id string) string { return fmt.Sprintf(`{"edda-intent":"reply","edda-instance":%q}`, id) }
	instance := w.text(`SELECT iid::text FROM edda.saga`)
	w.raw("shared.reply", `{}`, to(instance), "shared")
	w.raw("tally.told", `{"Key":"a"}`, to(instance), "shared")
	w.raw("shared.reply", `{}`, to("5f0c5a0e-9e0b-4d4e-8b6e-0a4d6f3c1b2a"), "shared")
	w.start("shared", bus.EndpointOptions{Concurrency: 1}, parts...)
	w.untilEmpty("shared")
	w.want(2, `SELECT count(*) FROM edda.discarded WHERE kind = 'shared.reply' AND reason = 'no instance'`)
	w.want(2, `SELECT count(*) FROM edda.discarded`)
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	w.want(2, `SELECT version FROM edda.saga`)
}

func TestSagasThatCannotShareAKind(t *testing.T) {
	opens := saga.StartedBy(func(m openLeft) string { return m.Key },
		func(*left, *saga.Context, openLeft) error { return nil })
	other := saga.StartedBy(func(m openRight) string { return m.Key },
		func(*left, *saga.Context, openRight) error { return nil })
	hears := func(o ...saga.HandleOption) saga.Part[left] {
		return saga.OnReply(func(*left, *saga.Context, comfort) error { return nil }, o...)
	}
	define := func(name string, parts ...saga.Part[left]) bus.Part {
		return bus.Saga(saga.Define(name, saga.Options{}, parts...))
	}
	w := newWorld(t, bus.Options{})
	for want, parts := range map[string][]bus.Part{
		"its messages name no instance": {define("one", opens), define("two", opens)},
		"give both the same IfMissing": {
			define("one", opens, hears()), define("two", other, hears(saga.IfMissing(saga.MissingRetry))),
		},
	} {
		_, err := bus.NewEndpoint(w.bus, "shared", bus.EndpointOptions{}, parts...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// An instance of the optimistic store is not locked, whether a message names it by key or by id, and whatever other
// sagas the endpoint has. A message that may be for a saga of the pessimistic store locks its instance.
func TestOptimisticSagasBesideOthersAreNotLocked(t *testing.T) {
	for name, c := range map[string]struct {
		left, right saga.Store
		want        string
	}{
		"both optimistic": {saga.Optimistic, saga.Optimistic, "shared.reply free, shared.rung free"},
		"one of each":     {saga.Optimistic, saga.Pessimistic, "shared.reply locked, shared.rung locked"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.start("answers", bus.EndpointOptions{}, bus.HandleRaw(func(c *bus.Context, _ *saga.Delivery) error {
				c.Reply(comfort{Text: "yes"})
				return nil
			}, "shared.question"))
			var seen []string // of one worker
			look := bus.Use(func(next bus.Handler) bus.Handler {
				return func(ctx context.Context, d *saga.Delivery) error {
					if d.Info.Kind == (openLeft{}).Kind() {
						return next(ctx, d)
					}
					tag, err := w.pool.Exec(ctx, w.sql(`SELECT FROM edda.saga FOR UPDATE SKIP LOCKED`))
					if err != nil {
						return err
					}
					state := "locked"
					if tag.RowsAffected() == 1 {
						state = "free"
					}
					seen = append(seen, d.Info.Kind+" "+state)
					return next(ctx, d)
				}
			})
			stop := w.start("shared", bus.EndpointOptions{Concurrency: 1}, append(twoSagas(c.left, c.right), look)...)
			w.send(openLeft{Key: "a"})
			w.until("it has heard both", func() bool {
				return w.count(`SELECT count(*) FROM edda.saga WHERE state ->> 'Rung' = '1'
					AND state ->> 'Told' = '1'`) == 1
			})
			stop()
			slices.Sort(seen)
			if got := strings.Join(seen, ", "); got != c.want {
				t.Errorf("while steps ran: %s, want %s", got, c.want)
			}
		})
	}
}
