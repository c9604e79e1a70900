package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

func (w *world) histories() *history.Store { return history.New(w.parsed()) }

// timeline returns a line for each version of an instance, the oldest first.
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

// life returns the only life of an order that has ended. A life is the record of one instance from start to end.
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

// failingOrders is an order whose bump fails a number of times.
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

// A failed attempt is in the history with its error, between the versions around it, however it is retried.
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
		last, ok, err := persistence.New(w.parsed()).LastPage(t.Context(), w.owner, "order", "7")
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		wantLines(t, w.timeline(last.Instance, last.Page),
			`v1 began {"Total":100,"Bumps":0,"Paid":false}; order.place handled 1`,
			`v0 attempted ; order.bump retried 1 not yet; order.bump retried 2 not yet`,
			`v2 changed {"Total":100,"Bumps":1,"Paid":false}; order.bump handled 3`)
		found, err := w.histories().Messages(t.Context(), w.owner, sent.ID)
		attempts := found[sent.ID]
		if err != nil || len(attempts) != 3 || attempts[2].Version != 2 || attempts[0].Instance != last.Instance ||
			attempts[0].Took <= 0 || attempts[0].Host == "" {
			t.Errorf("%+v, %v", attempts, err)
		}
		w.send(bump{Order: "7"})
		w.untilEmpty("orders")
		life := w.life("7")
		lines := w.timeline(life.ID, life.Page)
		if end := lines[len(lines)-1]; life.ID != last.Instance || life.Outcome != history.Completed ||
			end != `v3 ended {"Total":100,"Bumps":2,"Paid":false}; order.bump handled 1` {
			t.Errorf("%+v: %s", life, end)
		}
	})
}

// Messages are handled alike at every level; the kept history depends on the level, and on an operator's setting.
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

// The messages that follow from a message are found with it, and messages that were sent and not handled are marked.
func TestHistoryOfAConversation(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("cards", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m pay) error {
		ctx.Reply(paid{Order: m.Order})
		return nil
	}))
	w.start("orders", bus.EndpointOptions{}, bus.Saga(orders(saga.Pessimistic)))
	sent := w.send(place{Order: "7", Total: 100})
	w.until("the order ends", func() bool { return w.count(`SELECT count(*) FROM edda.history_life`) == 1 })
	followed, err := w.histories().Conversation(context.Background(), w.owner, sent.ID, 100)
	if err != nil || followed.More {
		t.Fatalf("%v, more %v", err, followed.More)
	}
	var lines []string
	for _, e := range followed.Attempts {
		lines = append(lines, e.Endpoint+": "+entryLine(e))
	}
	wantLines(t, lines,
		"orders: order.place handled 1 ->card.pay ->order.overdue",
		"cards: card.pay handled 1 ->card.paid",
		"orders: card.paid handled 1 ->order.shipped cancelled 1")
	kinds := []string{}
	for _, m := range followed.Unseen {
		kinds = append(kinds, m.Kind)
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"order.overdue", "order.shipped"}) {
		t.Errorf("not handled: %v", kinds)
	}
	followed, err = w.histories().Conversation(context.Background(), w.owner, sent.ID, 2)
	if err != nil || !followed.More {
		t.Errorf("of two messages at most: more %v, %v", followed.More, err)
	}
}

// attempts returns a line for each attempt of a message.
func (w *world) attempts(id saga.ID) (lines []string) {
	w.t.Helper()
	found, err := w.histories().Messages(w.t.Context(), w.owner, id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range found[id] {
		line := e.Endpoint + ": " + entryLine(e)
		if e.Reason != "" {
			line += " (" + e.Reason + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// Failures are kept even if very few conversations are sampled.
func TestSampledHistoryKeepsFailures(t *testing.T) {
	var redacted atomic.Int64
	w := newWorld(t, bus.Options{History: history.Options{Level: history.Bodies, Sample: 1e-12},
		Redact: func(_ string, text []byte) []byte { redacted.Add(1); return text }})
	w.start("orders", bus.EndpointOptions{},
		bus.Saga(failingOrders(saga.Optimistic,
			map[int]error{1: saga.Permanent(errOften), 2: saga.Discard("unwanted")})))
	placed := w.send(place{Order: "7"})
	w.untilEmpty("orders")
	if n := redacted.Load(); n != 0 {
		t.Errorf("Redact was called %d times for what is not kept", n)
	}
	dead, discarded := w.send(bump{Order: "7"}), w.send(bump{Order: "7"})
	w.untilEmpty("orders")
	wantLines(t, w.attempts(placed.ID))
	wantLines(t, w.attempts(dead.ID), "orders: order.bump dead 1 not yet (permanent)")
	wantLines(t, w.attempts(discarded.ID), "orders: order.bump discarded 1 (unwanted)")
	w.want(0, `SELECT count(*) FROM edda.saga WHERE history IS NOT NULL`)
}

// A message that changes nothing is in the timeline between the versions.
func TestHistoryTellsWhatChangedNothing(t *testing.T) {
	bothStores(t, func(t *testing.T, store saga.Store) {
		w := newWorld(t, bus.Options{})
		def := saga.Define("order", saga.Options{Store: store},
			saga.StartedBy(func(m place) string { return m.Order }, func(o *order, _ *saga.Context, m place) error {
				o.Total = m.Total
				return nil
			}),
			saga.Handles(func(m bump) string { return m.Order },
				func(*order, *saga.Context, bump) error { return nil }))
		w.start("orders", bus.EndpointOptions{}, bus.Saga(def))
		w.send(place{Order: "7", Total: 1})
		w.untilEmpty("orders")
		w.send(bump{Order: "7"})
		w.untilEmpty("orders")
		w.send(place{Order: "7", Total: 2})
		w.untilEmpty("orders")
		last, _, err := persistence.New(w.parsed()).LastPage(t.Context(), w.owner, "order", "7")
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, w.timeline(last.Instance, last.Page),
			`v1 began {"Total":1,"Bumps":0,"Paid":false}; order.place handled 1`,
			`v1 unchanged ; order.bump handled 1`,
			`v2 changed {"Total":2,"Bumps":0,"Paid":false}; order.place handled 1`)
	})
}

// A key that is used for two instances has two lives, each with its own timeline.
func TestLivesOfAKeyAreApart(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("orders", bus.EndpointOptions{}, bus.Saga(failingOrders(saga.Pessimistic, nil)))
	for range 2 {
		for _, m := range []saga.Message{place{Order: "7"}, bump{Order: "7"}, bump{Order: "7"}} {
			w.send(m)
			w.untilEmpty("orders")
		}
	}
	lives, err := w.histories().Lives(t.Context(), w.owner, "order", "7", 10)
	if err != nil || len(lives) != 2 || lives[0].ID == lives[1].ID || lives[0].Ended.Before(lives[1].Ended) {
		t.Fatalf("%+v, %v", lives, err)
	}
	for _, l := range lives {
		if lines := w.timeline(l.ID, l.Page); len(lines) != 3 {
			t.Errorf("%d versions: %v", len(lines), lines)
		}
		if found, ok, err := w.histories().LifeOf(t.Context(), w.owner, l.ID); found != l || !ok || err != nil {
			t.Errorf("%+v, %v, %v", found, ok, err)
		}
	}
	ended, err := w.histories().Ended(t.Context(), w.owner,
		history.EndedOf{Saga: "order", Outcome: history.Completed, Most: 1})
	if err != nil || len(ended) != 1 || ended[0] != lives[0] {
		t.Fatalf("%+v, %v", ended, err)
	}
	ended, err = w.histories().Ended(t.Context(), w.owner, history.EndedOf{Saga: "order", Most: 5,
		Before: ended[0].Ended, BeforeID: ended[0].ID})
	if err != nil || len(ended) != 1 || ended[0] != lives[1] {
		t.Errorf("%+v, %v", ended, err)
	}
}

// The history also has handlers outside of transactions, even if they send nothing.
func TestHistoryOfALeasedHandler(t *testing.T) {
	w := newWorld(t, bus.Options{})
	n := 0
	w.start("calls", bus.EndpointOptions{Concurrency: 1, Policy: func(recoverability.Failure) recoverability.Decision {
		return recoverability.RetryNow()
	}}, bus.Handle(func(*bus.Context, pay) error {
		if n++; n == 1 {
			return errOften
		}
		return nil
	}))
	sent := w.send(pay{Order: "7"})
	w.untilEmpty("calls")
	wantLines(t, w.attempts(sent.ID), "calls: card.pay retried 1 not yet", "calls: card.pay handled 2")
}

// The history has the messages that cross the border, in both directions.
func TestHistoryOfTheBorder(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("orders")
	arrived := w.arrive("orders", outbox.IngestMessage{ID: "1", Kind: "card.paid", Body: []byte("{}")},
		outbox.IngestMessage{ID: "2", Kind: "no kind", Body: []byte("{}")})
	w.arrive("orders", outbox.IngestMessage{ID: "1", Kind: "card.paid", Body: []byte("{}")}) // again
	wantLines(t, w.attempts(arrived[0].ID), "orders: card.paid ingested 0")
	if got := w.attempts(arrived[1].ID); len(got) != 1 || !strings.HasPrefix(got[0], "orders: no kind dead 0 ") {
		t.Errorf("got %v", got)
	}
	there := &abroad{}
	there.set(func(d *saga.Delivery) error {
		if strings.Contains(string(d.Body), "bad") {
			return saga.Permanent(errOften)
		}
		return nil
	})
	w.installRelay()
	w.runRelay(w.relay(w.bus, soonRelayed(), there.forward))
	good, bad := w.send(crossed{Key: "good"}), w.send(crossed{Key: "bad"})
	w.untilEmpty("border")
	wantLines(t, w.attempts(good.ID), "border: border.crossed relayed 1")
	wantLines(t, w.attempts(bad.ID), "border: border.crossed dead 1 not yet (permanent)")
}

// An attempt that succeeds has no error, even if an earlier attempt in the same batch had one.
func TestSuccessHasNoErrorOfTheAttemptBefore(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("orders", bus.EndpointOptions{Policy: func(recoverability.Failure) recoverability.Decision {
		return recoverability.RetryNow()
	}}, bus.Saga(failingOrders(saga.Pessimistic, map[int]error{1: errOften})))
	w.send(place{Order: "7"})
	w.untilEmpty("orders")
	sent := w.send(bump{Order: "7"})
	w.untilEmpty("orders")
	wantLines(t, w.attempts(sent.ID), "orders: order.bump retried 1 not yet", "orders: order.bump handled 2")
}

// Waiting for an instance is not an attempt.
func TestHistoryTellsNoAttemptOfWaiting(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("orders", bus.EndpointOptions{}, bus.Saga(failingOrders(saga.Pessimistic, nil)))
	sent := w.send(bump{Order: "nobody"})
	w.until("it was discarded", func() bool {
		w.hurry("orders")
		return w.count(`SELECT count(*) FROM edda.discarded`) == 1
	})
	wantLines(t, w.attempts(sent.ID), "orders: order.bump discarded 1 (no instance)")
}

// A completed instance that is remembered has one life, which ended when it completed and not when it is forgotten.
func TestRememberedInstanceEndsOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	def := saga.Define("order", saga.Options{Remember: 50 * time.Millisecond},
		saga.StartedBy(func(m place) string { return m.Order }, func(_ *order, ctx *saga.Context, _ place) error {
			return nil
		}),
		saga.Handles(func(m bump) string { return m.Order }, func(_ *order, ctx *saga.Context, _ bump) error {
			ctx.Complete()
			return nil
		}))
	w.start("orders", bus.EndpointOptions{}, bus.Saga(def))
	w.send(place{Order: "7"})
	w.until("it lives", func() bool { return w.count(`SELECT count(*) FROM edda.saga`) == 1 })
	w.send(bump{Order: "7"})
	w.until("it is forgotten", func() bool {
		return w.count(`SELECT count(*) FROM edda.saga`) == 0 && w.rows("orders") == 0
	})
	if l := w.life("7"); len(w.timeline(l.ID, l.Page)) != 3 { // it began, ended, and was forgotten
		t.Errorf("%v", w.timeline(l.ID, l.Page))
	}
}

// An end in a conversation that is not sampled leads to the kept versions.
func TestEndOutOfTheSampleLeadsToWhatIsKept(t *testing.T) {
	w := newWorld(t, bus.Options{})
	stop := w.start("orders", bus.EndpointOptions{}, bus.Saga(failingOrders(saga.Optimistic, nil)))
	w.send(place{Order: "7"})
	w.untilEmpty("orders")
	stop()
	w.start("orders", bus.EndpointOptions{History: history.Options{Sample: 1e-12}},
		bus.Saga(failingOrders(saga.Optimistic, nil)))
	for range 2 {
		w.send(bump{Order: "7"})
		w.untilEmpty("orders")
	}
	l := w.life("7")
	wantLines(t, w.timeline(l.ID, l.Page),
		`v1 began {"Total":0,"Bumps":0,"Paid":false}; order.place handled 1`)
}
