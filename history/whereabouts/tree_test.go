package whereabouts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	place   struct{ Order string }
	pay     struct{ Order string }
	paid    struct{ Order string }
	bump    struct{ Order string }
	overdue struct{}
	note    struct{ N int }
)

func (place) Kind() string   { return "order.place" }
func (pay) Kind() string     { return "card.pay" }
func (paid) Kind() string    { return "card.paid" }
func (bump) Kind() string    { return "order.bump" }
func (overdue) Kind() string { return "order.overdue" }
func (note) Kind() string    { return "order.note" }

type order struct {
	Bumps int
	Paid  bool
	Text  string
}

const notes = 15

func (o *order) place(ctx *saga.Context, m place) error {
	o.Text = strings.Repeat("long ", 100)
	ctx.Send(pay(m))
	ctx.Timeout(time.Hour, overdue{}, saga.Named("payment"))
	for n := range notes {
		ctx.Send(note{N: n})
	}
	return nil
}

func (o *order) paid(ctx *saga.Context, _ paid) error {
	o.Paid = true
	ctx.CancelTimeout("payment")
	return nil
}

var errBump = errors.New("no bump now")

func (o *order) bump(ctx *saga.Context, _ bump) error {
	if o.Bumps++; o.Bumps == 3 {
		ctx.Complete()
	}
	return nil
}

func orders(store saga.Store, fails func() bool) *saga.Definition {
	return saga.Define("order", saga.Options{Store: store},
		saga.StartedBy(func(m place) string { return m.Order }, (*order).place),
		saga.OnReply((*order).paid),
		saga.OnTimeout(func(*order, *saga.Context, overdue) error { return nil }),
		saga.Handles(func(m bump) string { return m.Order }, func(o *order, ctx *saga.Context, m bump) error {
			if fails() {
				return errBump
			}
			return o.bump(ctx, m)
		}))
}

func never() bool { return false }

// startShop runs the endpoints orders, cards and notes. Every tenth note fails, and orders fail if fails is true.
func (w *world) startShop(store saga.Store, fails func() bool) {
	w.t.Helper()
	w.start("cards", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m pay) error {
		ctx.Reply(paid(m))
		return nil
	}))
	w.start("notes", bus.EndpointOptions{Policy: recoverability.Always(recoverability.DeadLetter())},
		bus.Handle(func(_ *bus.Context, m note) error {
			if m.N%10 == 3 {
				return fmt.Errorf("note %d is bad", m.N)
			}
			return nil
		}))
	w.start("orders", bus.EndpointOptions{Concurrency: 1, Policy: recoverability.Always(recoverability.RetryIn(1))},
		bus.Saga(orders(store, fails)))
}

// lines renders a tree with indentation, and the states of its messages.
func lines(nodes []*whereabouts.Node, in string) (all []string) {
	for _, n := range nodes {
		states := []string{}
		for _, p := range n.Places {
			states = append(states, p.Endpoint+" "+string(p.State))
		}
		all = append(all, in+n.Info.Kind+": "+strings.Join(states, ", "))
		for _, g := range n.Effects {
			if g.Folded {
				all = append(all, fmt.Sprintf("%s  %s ×%d %v, %d left", in, g.Kind, g.Count, g.States, len(g.Nodes)))
				continue
			}
			all = append(all, lines(g.Nodes, in+"  ")...)
		}
	}
	return all
}

func TestConversationIsATreeOfCauses(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.startShop(saga.Pessimistic, never)
	root := w.send(place{Order: "7"})
	var c whereabouts.Conversation
	want := []string{
		"order.place: orders handled",
		"  card.pay: cards handled",
		"    card.paid: orders handled",
		"  order.overdue: orders cancelled",
		"  order.note ×15 map[dead:2 handled:13], 4 left",
	}
	read := func(id saga.ID, most int) bool {
		var ok bool
		var err error
		if c, ok, err = w.see.Conversation(t.Context(), id, most); err != nil {
			t.Fatal(err)
		}
		return ok
	}
	w.until("the tree", func() bool { return read(root, 100) && slices.Equal(lines(c.Roots, ""), want) },
		func() string { return strings.Join(lines(c.Roots, ""), "\n") })
	if c.Count != 19 || c.More {
		t.Errorf("%d messages, more %v", c.Count, c.More)
	}
	answer := c.Roots[0].Effects[0].Nodes[0].Effects[0].Nodes[0]
	if says := answer.Places[0].Says(); !strings.Contains(says, ", in version 2 of order 7") {
		t.Error(says)
	}
	// from any of its messages
	if !read(answer.ID, 100) || !slices.Equal(lines(c.Roots, ""), want) {
		t.Errorf("from the answer: %v", lines(c.Roots, ""))
	}
	if read(root, 5); c.Count != 5 || !c.More {
		t.Errorf("%d messages of 5 at most, more %v", c.Count, c.More)
	}
	if read(saga.ID{9}, 5) {
		t.Error("a conversation of an id that is not known")
	}
	// if the page in between is gone, from the first recorded message
	w.exec(`DELETE FROM edda.history WHERE endpoint = 'orders' AND id = (SELECT min(id::text)::uuid FROM edda.history
		WHERE endpoint = 'orders')`)
	if !read(answer.ID, 100) || !slices.Equal(lines(c.Roots, ""), []string{
		"card.pay: cards handled", "  card.paid: orders handled"}) {
		t.Errorf("without the first page: %v", lines(c.Roots, ""))
	}
}

// Waiting messages, and messages that an endpoint without history has handled, are in the tree.
func TestConversationShowsWhatHistoryHasNot(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("cards", bus.EndpointOptions{History: history.Options{Level: history.Off}},
		bus.Handle(func(ctx *bus.Context, m pay) error { return nil }))
	w.endpoint("notes", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, note) error { return nil }))
	w.endpoint("orders", bus.EndpointOptions{}, bus.Saga(orders(saga.Pessimistic, never)))
	root := w.send(place{Order: "7"})
	c, ok, err := w.see.Conversation(t.Context(), root, 100)
	if err != nil || !ok || !slices.Equal(lines(c.Roots, ""), []string{"order.place: orders waiting"}) {
		t.Errorf("before it is handled: %v, %v", lines(c.Roots, ""), err)
	}
	w.start("orders", bus.EndpointOptions{}, bus.Saga(orders(saga.Pessimistic, never)))
	want := []string{
		"order.place: orders handled", "  card.pay:  gone", "  order.overdue: orders delayed",
		"  order.note ×15 map[waiting:15], 2 left",
	}
	w.until("all is handled that is", func() bool {
		c, _, err = w.see.Conversation(t.Context(), root, 100)
		return err == nil && slices.Equal(lines(c.Roots, ""), want)
	}, func() string { return strings.Join(lines(c.Roots, ""), "\n") })
	says := c.Roots[0].Effects[0].Nodes[0].Places[0].Says()
	if says = anyTime.ReplaceAllString(says, "TIME"); says != "It was sent to an endpoint that handles card.pay at "+
		"TIME. It is in no queue any more, and the history has no later record of it: its endpoint, or its "+
		"conversation, keeps no history." {
		t.Error(says)
	}
}

// line describes a version without the details that differ from run to run.
func line(v *history.Version) string {
	text := fmt.Sprintf("v%d %v %s", v.Version, v.Change, history.Diff(v.Before, v.State))
	for _, e := range v.Entries {
		text += fmt.Sprintf("; %s %v %d %s", e.Info.Kind, e.Fate, e.Info.Attempt, e.Error)
	}
	return text
}

// The parts of a timeline add up to the whole, with each failed attempt in its place, once.
func TestTimelineInParts(t *testing.T) {
	for _, store := range []saga.Store{saga.Pessimistic, saga.Optimistic} {
		t.Run(fmt.Sprint("store ", store), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			n := 0
			w.startShop(store, func() bool { n++; return n == 1 || n == 3 })
			w.send(place{Order: "7"})
			living := func() history.Life {
				lives, err := w.see.Lives(t.Context(), "order", "7", 10)
				if err != nil || len(lives) != 1 {
					return history.Life{}
				}
				return lives[0]
			}
			version := func() (n int) {
				return w.count(`SELECT coalesce(sum(version), 0) FROM edda.saga WHERE key = '7'`)
			}
			for want := 2; want < 5; want++ {
				w.until("version", func() bool { return version() == want })
				if l := living(); l.Outcome != "" || l.Page.IsZero() || time.Since(l.Began) > time.Hour {
					t.Errorf("%+v", l)
				}
				w.send(bump{Order: "7"})
			}
			w.until("it ends", func() bool { l := living(); return l.Outcome == history.Completed })
			life := living()
			var parts []string
			for before, first := (saga.ID{}), true; first || !before.IsZero(); first = false {
				part, next, err := w.see.Timeline(t.Context(), life, before, 2)
				if err != nil || len(parts) > 20 {
					t.Fatalf("%v after %q", err, parts)
				}
				var told []string
				for _, v := range part {
					told = append(told, line(&v))
				}
				parts, before = append(told, parts...), next
			}
			want := []string{
				`v1 began {"Bumps":0,"Paid":false,"Text":"` + strings.Repeat("long ", 100) +
					`"}; order.place handled 1 `,
				`v2 changed Paid: false → true; card.paid handled 1 `,
				`v0 attempted ; order.bump retried 1 no bump now`,
				`v3 changed Bumps: 0 → 1; order.bump handled 2 `,
				`v0 attempted ; order.bump retried 1 no bump now`,
				`v4 changed Bumps: 1 → 2; order.bump handled 2 `,
				`v5 ended Bumps: 2 → 3; order.bump handled 1 `,
			}
			if !slices.Equal(parts, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(parts, "\n"), strings.Join(want, "\n"))
			}
			byID, ok, err := w.see.Life(t.Context(), life.ID)
			if err != nil || !ok || byID != life {
				t.Errorf("%+v, %v, %v", byID, ok, err)
			}
			ended, err := w.see.Ended(t.Context(), history.EndedOf{Saga: "order", Most: 10})
			if err != nil || len(ended) != 1 || ended[0] != life {
				t.Errorf("%+v, %v", ended, err)
			}
		})
	}
}

// The lives of a key are listed separately, the live one first.
func TestLivesOfAKey(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.startShop(saga.Pessimistic, never)
	live := func() {
		w.send(place{Order: "7"})
		w.until("it is paid", func() bool {
			return w.count(`SELECT count(*) FROM edda.saga WHERE key = '7' AND version = 2`) == 1
		})
	}
	for range 2 {
		live()
		for range 3 {
			w.send(bump{Order: "7"})
		}
		w.until("it ends", func() bool { return w.count(`SELECT count(*) FROM edda.saga`) == 0 })
	}
	live()
	lives, err := w.see.Lives(t.Context(), "order", "7", 10)
	if err != nil || len(lives) != 3 || lives[0].Outcome != "" || lives[1].Outcome != history.Completed ||
		!lives[1].Ended.After(lives[2].Ended) {
		t.Fatalf("%+v, %v", lives, err)
	}
	for _, l := range lives {
		timeline, _, err := w.see.Timeline(t.Context(), l, saga.ID{}, 10)
		if err != nil || timeline[0].Version != 1 || timeline[0].ID != l.ID {
			t.Errorf("%+v, %v", timeline, err)
		}
	}
	for most, want := range map[int]int64{10: 2, 1: 1} {
		ended, err := w.see.EndedSince(t.Context(), []string{"order", "other"}, time.Hour, most)
		if err != nil || len(ended) != 2 || ended["order"] != want || ended["other"] != 0 {
			t.Errorf("up to %d have ended: %v, %v", most, ended, err)
		}
	}
	if ended, err := w.see.EndedSince(t.Context(), []string{"order"}, 0, 10); err != nil || ended["order"] != 0 {
		t.Errorf("at this moment have ended: %v, %v", ended, err)
	}
	if byID, ok, err := w.see.Life(t.Context(), lives[0].ID); err != nil || !ok || byID != lives[0] {
		t.Errorf("the living one: %+v, %v, %v", byID, ok, err)
	}
	if two, err := w.see.Lives(t.Context(), "order", "7", 2); err != nil || len(two) != 2 || two[0] != lives[0] {
		t.Errorf("%+v, %v", two, err)
	}
	if _, ok, err := w.see.Life(t.Context(), saga.ID{1}); err != nil || ok {
		t.Errorf("a life of no instance: %v, %v", ok, err)
	}
}

// A completed instance that its saga remembers has one life, which has ended.
func TestRememberedInstancesHaveEnded(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("orders", bus.EndpointOptions{}, bus.Saga(saga.Define("short", saga.Options{Remember: time.Hour},
		saga.StartedBy(func(m place) string { return m.Order }, func(_ *order, ctx *saga.Context, _ place) error {
			ctx.Complete()
			return nil
		}))))
	w.send(place{Order: "7"})
	w.until("it has ended", func() bool { return w.count(`SELECT count(*) FROM edda.history_life`) == 1 })
	lives, err := w.see.Lives(t.Context(), "short", "7", 10)
	if err != nil || len(lives) != 1 || lives[0].Outcome != history.Completed {
		t.Errorf("%+v, %v", lives, err)
	}
}

// A role that may only read can call all methods.
func TestReadersMayAsk(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.startShop(saga.Pessimistic, never)
	id := w.send(place{Order: "7"})
	w.is(id, "handled: orders handled it at TIME, and began order 7.")
	config := pgtest.Direct(t, w.pool).Config()
	pgtest.Become(config, pgtest.Reader(t, w.pool, w.schema))
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	reader, err := operate.New(pool, operate.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	see := reader.History()
	_, message := see.Message(t.Context(), id)
	_, ok, conversation := see.Conversation(t.Context(), id, 100)
	lives, err := see.Lives(t.Context(), "order", "7", 10)
	if err != nil || len(lives) != 1 || !ok {
		t.Fatalf("%+v, %v, %v", lives, ok, err)
	}
	_, _, life := see.Life(t.Context(), lives[0].ID)
	_, _, timeline := see.Timeline(t.Context(), lives[0], saga.ID{}, 10)
	_, ended := see.Ended(t.Context(), history.EndedOf{Saga: "order", Most: 10})
	if err := errors.Join(message, conversation, life, timeline, ended); err != nil {
		t.Error(err)
	}
}
