package bus_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
)

// errand is a message that one transaction handles alone.
type errand struct{ N int }

func (errand) Kind() string { return "errand" }

// crowd counts the handlers that run in all endpoints of a test.
type crowd struct{ inside, most, done atomic.Int64 }

// handle works for some milliseconds. Its slot is held for longer than that: until the commit.
func (c *crowd) handle(ctx *bus.Context, tx pgx.Tx, _ errand) error {
	now := c.inside.Add(1)
	defer c.inside.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); {
		most = c.most.Load()
	}
	_, err := tx.Exec(ctx, "SELECT pg_sleep(0.004)")
	c.done.Add(1)
	return err
}

// servers runs the endpoint "errands" in n buses of one schema, one message in a transaction.
func (w *world) servers(n int, c *crowd, o bus.EndpointOptions) {
	w.t.Helper()
	o.BatchMax, o.Concurrency = 1, 2
	for range n {
		b := w.newBus(bus.Options{Schema: w.schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
		w.startOn(b, "errands", o, bus.HandleTx(c.handle))
	}
}

func (w *world) setLimit(n int) {
	w.t.Helper()
	if err := w.operator().Limits().Set(w.t.Context(), "errands", n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) limit() operate.LimitInfo {
	w.t.Helper()
	i, err := w.operator().Limits().Get(w.t.Context(), "errands")
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// Three servers with two workers each, and a limit that changes while they work.
func TestNoMoreBatchesThanTheLimit(t *testing.T) {
	w, c := newWorld(t, bus.Options{}), &crowd{}
	w.servers(3, c, bus.EndpointOptions{ClusterConcurrency: 2})
	messages := 300
	for n := range messages {
		w.send(errand{n})
	}
	for _, n := range []int{2, 1, 4, 3, 1, 2} {
		w.setLimit(n)
		c.most.Store(0)
		from := c.done.Load()
		w.until(fmt.Sprintf("it was busy under the limit %d", n), func() bool {
			w.send(errand{messages}) // otherwise a slow machine is done before all slots were held at once
			messages++
			return c.done.Load() > from+40 && c.most.Load() >= int64(n)
		})
		if most := c.most.Load(); most > int64(n) {
			t.Errorf("%d batches at once, and the limit is %d", most, n)
		}
		if i := w.limit(); i.Limit != n || i.Held > n {
			t.Errorf("set to %d, it stands at %+v", n, i)
		}
	}
	w.setLimit(10)
	w.untilEmpty("errands")
	if done := int(c.done.Load()); done < messages { // an attempt whose slot was lost is counted too
		t.Errorf("%d of %d messages were handled", done, messages)
	}
}

// A limit that is set in psql reaches processes that had no limit, and processes that wait under a limit.
func TestLimitIsSetWhileItRuns(t *testing.T) {
	w, c := newWorld(t, bus.Options{}), &crowd{}
	b, proxy := w.proxied()
	w.startOn(b, "errands", bus.EndpointOptions{Concurrency: 2, BatchMax: 1}, bus.HandleTx(c.handle))
	for n := range 10 {
		w.send(errand{n})
	}
	w.untilEmpty("errands")
	if n := proxy.Seen()["permit"]; n > 0 {
		t.Errorf("an endpoint without a limit asked %d times for a permit", n)
	}
	w.exec("SELECT edda.set_limit('errands', 1)")
	w.until("a permit is asked for", func() bool {
		w.send(errand{})
		return proxy.Seen()["permit"] > 0
	})
	w.untilEmpty("errands") // a batch that began before the limit was read may still run
	c.most.Store(0)
	for n := range 30 {
		w.send(errand{n})
	}
	w.untilEmpty("errands")
	if most := c.most.Load(); most != 1 {
		t.Errorf("%d batches at once under a limit of 1", most)
	}
}

// A broken connection may lose the notification that a slot is free.
func TestEndpointThatMissedNotificationsLooksForASlot(t *testing.T) {
	w := newWorld(t, bus.Options{})
	e := w.endpoint("errands", bus.EndpointOptions{ClusterConcurrency: 1}, bus.HandleTx((&crowd{}).handle))
	w.run(e)
	w.untilListening(1) // the notifications of the limit's declaration have arrived
	w.untilWithin(pgdev.Patience(5*time.Second), "it looks for a slot", func() bool { return bus.SlotsAfterMissed(e) })
}

// A deploy with a different number changes the limit, until an operator sets one. From then on a deploy logs a warning
// about the difference, and a reset makes the limit follow the program again.
func TestDeployChangesTheLimitUnlessAnOperatorHas(t *testing.T) {
	var text bytes.Buffer // read when nothing runs
	w := newWorld(t, bus.Options{Logger: slog.New(
		slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	w.makeQueue("errands")
	deploy := func(n, want int, warns string) {
		t.Helper()
		text.Reset()
		e := w.endpoint("errands", bus.EndpointOptions{ClusterConcurrency: n}, bus.HandleTx((&crowd{}).handle))
		w.must(e.Install(t.Context()))
		if i := w.limit(); i.Limit != want {
			t.Errorf("installed with %d: %+v, want %d", n, i, want)
		}
		if n > 0 && !bus.Limited(e) {
			t.Errorf("installed with %d, it observes no limit", n)
		}
		w.must(errors.Join(e.Check(t.Context()), e.Check(t.Context())))
		if i := w.limit(); i.Limit != want {
			t.Errorf("deployed with %d: %+v, want %d", n, i, want)
		}
		lines := strings.Count(text.String(), "\n")
		if warns == "" && lines > 0 || warns != "" && (lines != 1 || !strings.Contains(text.String(), warns)) {
			t.Errorf("deployed with %d, the log says %q, want one line with %q", n, text.String(), warns)
		}
	}
	deploy(3, 3, "")
	deploy(8, 8, "")
	deploy(0, 8, "") // a program without a number follows
	w.setLimit(5)
	deploy(3, 5, `limit=5 cluster_concurrency=3 remedy="edda limit reset errands"`)
	deploy(5, 5, "")
	deploy(4, 5, `limit=5 cluster_concurrency=4 remedy="edda limit reset errands"`)
	if err := w.operator().Limits().Reset(t.Context(), "errands"); err != nil {
		t.Fatal(err)
	}
	deploy(4, 4, "")
	old := w.endpoint("errands", bus.EndpointOptions{ClusterConcurrency: 7}, bus.HandleTx((&crowd{}).handle))
	if err := old.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	deploy(6, 6, "")
	// The old program still runs, and its health is checked: it has already declared its number.
	if err := old.Check(t.Context()); err != nil || w.limit().Limit != 6 {
		t.Errorf("a health check of the old program: limit %d, want 6, %v", w.limit().Limit, err)
	}
	w.setLimit(2)
	if err := old.Check(t.Context()); err != nil || !strings.Contains(text.String(), "limit=2 cluster_concurrency=7") {
		t.Errorf("a check after an operator's change says %q, %v", text.String(), err)
	}
}

func TestLimitErrors(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.makeQueue("errands")
	e := w.endpoint("errands", bus.EndpointOptions{}, bus.HandleTx((&crowd{}).handle))
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, get := w.operator().Limits().Get(t.Context(), "errands")
	if !errors.Is(get, operate.ErrNoLimit) {
		t.Errorf("get without a limit: %v", get)
	}
	if err := w.operator().Limits().Set(t.Context(), "erands", 1); !errors.Is(err, bus.ErrNotInstalled) {
		t.Errorf("set the limit of a misspelt endpoint: %v", err)
	}
	for _, n := range []int{0, -1, 10_001} {
		if err := w.operator().Limits().Set(t.Context(), "errands", n); err == nil ||
			!strings.Contains(err.Error(), "want 1 to 10000") {
			t.Errorf("set to %d: %v", n, err)
		}
	}
	for _, n := range []int{-1, 10_001} {
		_, err := bus.NewEndpoint(w.bus, "errands", bus.EndpointOptions{ClusterConcurrency: n},
			bus.HandleTx((&crowd{}).handle))
		if err == nil || !strings.Contains(err.Error(), "ClusterConcurrency") {
			t.Errorf("ClusterConcurrency %d: %v", n, err)
		}
	}
}
