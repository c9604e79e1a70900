package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

func (w *world) histories() *history.Store { return history.New(w.parsed()) }

// timeline tells of an instance in a line for each version, the oldest first.
func (w *world) timeline(instance, page saga.ID) (lines []string) {
	w.t.Helper()
	found, before, err := w.histories().Timeline(w.t.Context(), w.owner, instance, page, 100)
	if err != nil || !before.IsZero() {
		w.t.Fatalf("%v, before %v", err, before)
	}
	for _, v := range found {
		line := fmt.Sprintf("v%d %v %s", v.Version, v.Change, v.State)
		for _, e := range v.Entries {
			line += "; " + entryLine(e)
		}
		lines = append(lines, line)
	}
	return lines
}

func entryLine(e history.Entry) string {
	line := fmt.Sprintf("%s %s %d", e.Info.Kind, e.Fate, e.Info.Attempt)
	if e.Error != "" {
		line += " " + e.Error
	}
	for _, out := range e.Sent {
		line += " ->" + out.Kind
	}
	if len(e.Cancelled) > 0 {
		line += fmt.Sprintf(" cancelled %d", len(e.Cancelled))
	}
	return line
}

// life is the only life of an order that has ended.
func (w *world) life(key string) history.Life {
	w.t.Helper()
	lives, err := w.histories().Lives(w.t.Context(), w.owner, "order", key, 10)
	if err != nil || len(lives) != 1 {
		w.t.Fatalf("%+v, %v", lives, err)
	}
	return lives[0]
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var errOften = errors.New("not yet")

// failing is an order whose bump fails a number of times.
func failingOrders(store saga.Store, fails map[int]error) *saga.Definition {
	n := 0
	return saga.Define("order", saga.Options{Store: store},
		saga.StartedBy(func(m place) string { return m.Order }, func(o *order, _ *saga.Context, m place) error {
			o.Total = m.Total
			return nil
		}),
		saga.Handles(func(m bump) string { return m.Order }, func(o *order, ctx *saga.Context, m bump) error {
			n++
			if err := fails[n]; err != nil {
				return err
			}
			if o.Bumps++; o.Bumps == 2 {
				ctx.Complete()
			}
			return nil
		}))
}

// A failed attempt is told with its error, between the versions around it, however it is tried again.
func TestHistoryTellsFailedAttempts(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		policy := func(f recoverability.Failure) recoverability.Decision {
			if f.Info.Attempt == 1 {
				return recoverability.RetryNow()
			}
			return recoverability.RetryIn(time.Millisecond)
		}
		w.start("orders", bus.EndpointOptions{Policy: policy},
			bus.Saga(failingOrders(store, map[int]error{1: errOften, 2: errOften})))
		w.send(place{Order: "7", Total: 100})
		w.untilEmpty("orders")
		sent := w.send(bump{Order: "7"})
		w.untilEmpty("orders")
		id, page, ok, err := persistence.New(w.parsed()).LastPage(t.Context(), w.owner, "order", "7")
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		wantLines(t, w.timeline(id, page),
			`v1 began {"Total":100,"Bumps":0,"Paid":false}; order.place handled 1`,
			`v0 attempted ; order.bump retried 1 not yet; order.bump retried 2 not yet`,
			`v2 changed {"Total":100,"Bumps":1,"Paid":false}; order.bump handled 3`)
		attempts, err := w.histories().Message(t.Context(), w.owner, sent.ID)
		if err != nil || len(attempts) != 3 || attempts[2].Version != 2 || attempts[0].Instance != id {
			t.Errorf("%+v, %v", attempts, err)
		}
		w.send(bump{Order: "7"})
		w.untilEmpty("orders")
		life := w.life("7")
		lines := w.timeline(life.ID, life.Page)
		if last := lines[len(lines)-1]; life.ID != id || life.Outcome != history.Completed ||
			last != `v3 ended {"Total":100,"Bumps":2,"Paid":false}; order.bump handled 1` {
			t.Errorf("%+v: %s", life, last)
		}
	})
}

// Whatever the level, messages are handled alike; what is kept depends on it, and on what an operator has set.
func TestHistoryFollowsWhatIsSet(t *testing.T) {
	w := newWorld(t, bus.Options{History: history.Options{Level: history.Off}})
	w.start("a", bus.EndpointOptions{}, bus.Saga(failingOrders(saga.Pessimistic, nil)))
	pages := func() int { return w.count(`SELECT count(*) FROM edda.history`) }
	w.send(place{Order: "1"})
	w.untilEmpty("a")
	if n := pages(); n != 0 {
		t.Errorf("%d pages, and the bus keeps no history", n)
	}
	set := func(o history.Options) {
		t.Helper()
		if err := w.operator().Endpoints().SetHistory(t.Context(), "a", o); err != nil {
			t.Fatal(err)
		}
	}
	set(history.Options{Level: history.Steps})
	orders := 1
	w.until("the endpoint follows", func() bool {
		orders++
		w.send(place{Order: fmt.Sprint(orders)})
		w.untilEmpty("a")
		return pages() > 0
	})
	set(history.Options{})
	w.until("the endpoint follows", func() bool {
		before := pages()
		orders++
		w.send(place{Order: fmt.Sprint(orders)})
		w.untilEmpty("a")
		return pages() == before
	})
	if err := w.operator().Endpoints().SetHistory(t.Context(), "b", history.Options{}); !errors.Is(err,
		bus.ErrNotInstalled) {
		t.Errorf("an endpoint that is not there: %v", err)
	}
	if err := w.operator().Endpoints().SetHistory(t.Context(), "a", history.Options{Sample: 2}); err == nil {
		t.Error("a sample of 2 was set")
	}
}

// The messages that follow from one are found with it, and what is sent and was not handled is told apart.
func TestHistoryOfAConversation(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("cards", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m pay) error {
		ctx.Reply(paid{Order: m.Order})
		return nil
	}))
	w.start("orders", bus.EndpointOptions{}, bus.Saga(orders(saga.Pessimistic)))
	sent := w.send(place{Order: "7", Total: 100})
	w.until("the order ends", func() bool { return w.count(`SELECT count(*) FROM edda.history_life`) == 1 })
	attempts, unseen, more, err := w.histories().Conversation(context.Background(), w.owner, sent.ID, 100)
	if err != nil || more {
		t.Fatalf("%v, more %v", err, more)
	}
	var lines []string
	for _, e := range attempts {
		lines = append(lines, e.Endpoint+": "+entryLine(e))
	}
	wantLines(t, lines,
		"orders: order.place handled 1 ->card.pay ->order.overdue",
		"cards: card.pay handled 1 ->card.paid",
		"orders: card.paid handled 1 ->order.shipped cancelled 1")
	kinds := []string{}
	for _, m := range unseen {
		kinds = append(kinds, m.Kind)
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"order.overdue", "order.shipped"}) {
		t.Errorf("not handled: %v", kinds)
	}
	if _, _, more, err := w.histories().Conversation(context.Background(), w.owner, sent.ID, 2); err != nil || !more {
		t.Errorf("of two messages at most: more %v, %v", more, err)
	}
}
