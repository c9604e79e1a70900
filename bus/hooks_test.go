package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

type traceKey struct{}

func traced(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// stamp is a hook that writes the trace of the context into each message.
func stamp(ctx context.Context, i *saga.Info) {
	i.AddHeader("trace", fmt.Sprint(ctx.Value(traceKey{})))
}

// tracingEach is a middleware that begins a trace for each message.
func tracingEach(next bus.Handler) bus.Handler {
	return func(ctx context.Context, d *saga.Delivery) error { return next(traced(ctx, "in "+d.Info.Kind), d) }
}

type hop struct{ Key string }

func (hop) Kind() string { return "hop" }

type landed struct{ Key string }

func (landed) Kind() string { return "landed" }

const traceOf = `convert_from(header, 'UTF8')::json->>'trace'` // of a row of a queue

// landings is a part that is subscribed to landed.
var landings = bus.HandleTx(func(*bus.Context, pgx.Tx, landed) error { return nil })

// Every way out calls the hook, with the context of the caller.
func TestOutgoingOfEverySender(t *testing.T) {
	w := newWorld(t, bus.Options{Outgoing: stamp})
	w.install("sink", landings)
	db := stdlib.OpenDBFromPool(w.pool)
	defer db.Close()
	inTx := func(ctx context.Context, f func(tx pgx.Tx) error) error { return w.bus.InTx(ctx, f) }
	inSQL := func(ctx context.Context, f func(tx *sql.Tx) error) error { return w.bus.SQL(db).InTx(ctx, f) }
	to, raw := saga.To("sink"), saga.Raw{Name: "landed", Body: []byte(`{}`)}
	senders := map[string]func(ctx context.Context) error{
		"Send":    func(ctx context.Context) error { _, err := w.bus.Send(ctx, hop{}, to); return err },
		"Publish": func(ctx context.Context) error { _, err := w.bus.Publish(ctx, landed{}); return err },
		"SendTx": func(ctx context.Context) error {
			return inTx(ctx, func(tx pgx.Tx) error { _, err := w.bus.SendTx(ctx, tx, hop{}, to); return err })
		},
		"PublishTx": func(ctx context.Context) error {
			return inTx(ctx, func(tx pgx.Tx) error { _, err := w.bus.PublishTx(ctx, tx, landed{}); return err })
		},
		"SendSQL": func(ctx context.Context) error {
			return inSQL(ctx, func(tx *sql.Tx) error { return second(w.bus.SQL(nil).SendTx(ctx, tx, hop{}, to)) })
		},
		"PublishSQL": func(ctx context.Context) error {
			return inSQL(ctx, func(tx *sql.Tx) error { return second(w.bus.SQL(nil).PublishTx(ctx, tx, landed{})) })
		},
		"SendAllTx": func(ctx context.Context) error {
			all := []saga.Posting{{Message: hop{}, Options: []saga.SendOption{to}}}
			return inTx(ctx, func(tx pgx.Tx) error { _, err := w.bus.SendAllTx(ctx, tx, all); return err })
		},
		"SendRaw":    func(ctx context.Context) error { return w.bus.SendRaw(ctx, "sink", bus.RawMessage{Raw: raw}) },
		"PublishRaw": func(ctx context.Context) error { return w.bus.SendRaw(ctx, "*", bus.RawMessage{Raw: raw}) },
		"SendRawTx": func(ctx context.Context) error {
			return inTx(ctx, func(tx pgx.Tx) error {
				return w.bus.SendRawTx(ctx, tx, "sink", bus.RawMessage{Raw: raw})
			})
		},
		"Ingest": func(ctx context.Context) error {
			_, err := w.bus.Ingest(ctx, outbox.IngestOptions{From: "payments", Endpoint: "sink"},
				outbox.IngestMessage{ID: "1", Kind: "landed", Body: []byte(`{}`)})
			return err
		},
	}
	table := w.queue("sink")
	for name, send := range senders {
		if err := send(traced(t.Context(), name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := w.count(`SELECT count(*) FROM `+table+` WHERE `+traceOf+` = $1`, name); n != 1 {
			t.Errorf("%s: %d messages have its trace, want 1", name, n)
		}
	}
}

// A message that a handler sends has the context that the middleware passed to the handler, for every kind of handler.
func TestOutgoingOfEveryHandler(t *testing.T) {
	sends := func(c interface {
		Send(saga.Message, ...saga.SendOption) saga.ID
		Publish(saga.Message, ...saga.SendOption) saga.ID
		Reply(saga.Message, ...saga.SendOption) saga.ID
	}) error {
		c.Send(landed{}, saga.To("sink"))
		c.Publish(landed{})
		c.Reply(landed{})
		return nil
	}
	handlers := map[string]bus.Part{
		"HandleTx":  bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ hop) error { return sends(c) }),
		"Handle":    bus.Handle(func(c *bus.Context, _ hop) error { return sends(c) }),
		"HandleRaw": bus.HandleRaw(func(c *bus.Context, _ *saga.Delivery) error { return sends(c) }, "hop"),
		"Saga": bus.Saga(saga.Define("hops", saga.Options{}, saga.StartedBy(func(m hop) string { return m.Key },
			func(_ *tally, c *saga.Context, _ hop) error { return sends(c) }))),
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{Outgoing: stamp})
			w.install("sink", landings)
			w.start("hops", bus.EndpointOptions{}, handler, bus.Use(tracingEach))
			w.raw("hop", `{"Key":"a"}`, `{"edda-from": "sink", "trace": "of SQL"}`, "hops")
			w.untilEmpty("hops")
			table := w.queue("sink")
			w.wantText("3", `SELECT count(*)::text FROM `+table+` WHERE `+traceOf+` = 'in hop'`)
		})
	}
}

// A message that is sent twice is a duplicate even if its trace differs; and a later attempt has the trace of the
// first.
func TestHeadersOfOutgoingChangeNothingElse(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	w := newWorld(t, bus.Options{Outgoing: func(ctx context.Context, i *saga.Info) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		stamp(ctx, i)
	}})
	attempts := make(chan saga.Info, 10)
	w.queueOf("hops")
	id := saga.ID{15: 7}
	for n, trace := range []string{"first", "second"} {
		sent, err := w.bus.Send(traced(t.Context(), trace), hop{}, saga.To("hops"), saga.WithID(id))
		if err != nil || sent.Duplicate != (n == 1) {
			t.Fatalf("%s: %+v, %v, want the second to be a duplicate", trace, sent, err)
		}
	}
	w.start("hops", bus.EndpointOptions{Policy: func(f recoverability.Failure) recoverability.Decision {
		return recoverability.RetryIn(time.Millisecond)
	}}, bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ hop) error {
		attempts <- c.Info()
		if c.Info().Attempt < 3 {
			return errors.New("no")
		}
		return nil
	}))
	for n := range 3 {
		if i := await(w, "an attempt", attempts); i.Attempt != n+1 || i.Header("trace") != "first" {
			t.Errorf("attempt %d has the trace %q, want that of the first send", i.Attempt, i.Header("trace"))
		}
	}
	w.untilEmpty("hops")
	mu.Lock()
	defer mu.Unlock()
	if calls != 2 {
		t.Errorf("the hook was called %d times, want once for each Send", calls)
	}
}

// A hook that panics fails the send, or the attempt. Nothing is lost: the message becomes a dead letter with the panic.
func TestPanicOfOutgoing(t *testing.T) {
	w := newWorld(t, bus.Options{Outgoing: func(_ context.Context, i *saga.Info) {
		if i.Kind == "landed" {
			panic("no tracer")
		}
	}})
	w.queueOf("sink")
	var panicked *saga.PanicError
	if _, err := w.bus.Send(t.Context(), landed{}, saga.To("sink")); !errors.As(err, &panicked) {
		t.Errorf("Send: %v, want the panic as its error", err)
	}
	// otherwise the sender would deliver it again and again
	if got := w.arrive("sink", outbox.IngestMessage{ID: "1", Kind: "landed"}); got[0].State != outbox.Accepted {
		t.Errorf("Ingest: %+v, want the message without the headers", got[0])
	}
	w.exec(`TRUNCATE ` + w.queue("sink"))
	twice := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt < 2 {
			return recoverability.RetryNow()
		}
		return recoverability.DeadLetter()
	}
	sends := func(c *bus.Context) error { c.Send(landed{}, saga.To("sink")); return nil }
	for name, handler := range map[string]bus.Part{
		"tx":     bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ hop) error { return sends(c) }),
		"leased": bus.Handle(func(c *bus.Context, _ hop) error { return sends(c) }),
	} {
		w.start(name, bus.EndpointOptions{Policy: twice}, handler)
		w.send(hop{}, saga.To(name))
		w.untilEmpty(name)
	}
	w.wantText("leased 2 true, tx 2 true", `SELECT string_agg(endpoint || ' ' || attempts || ' ' ||
		(error LIKE '%no tracer%'), ', ' ORDER BY endpoint) FROM edda.dead_letter`)
	if n := w.count(`SELECT count(*) FROM ` + w.queue("sink")); n != 0 {
		t.Errorf("%d messages were written", n)
	}
}

// transactions records the calls of the hook.
type transactions struct {
	mu  sync.Mutex
	all []decided
}

// decided is a transaction with its messages at the time of the hook's call.
type decided struct {
	event.Transaction
	messages []event.Settled
}

func (a *transactions) around(ctx context.Context, t *event.Transaction, run func(context.Context)) {
	run(traced(ctx, "around "+t.Endpoint))
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.Taken > 0 || t.Err != nil {
		a.all = append(a.all, decided{*t, t.Messages()})
	}
}

// story returns the results of an endpoint's transactions.
func (a *transactions) story(endpoint string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := ""
	for _, t := range a.all {
		if t.Endpoint != endpoint {
			continue
		}
		text += string(t.Work) + ":"
		for _, m := range t.messages {
			text += fmt.Sprintf(" %d-%s", m.Info.Attempt, m.Fate)
		}
		if t.Err != nil {
			text += " rolled back"
		}
		text += "; "
	}
	return text
}

// The hook gets the fate of each message and each attempt.
func TestAroundTellsTheFates(t *testing.T) {
	a := &transactions{}
	w := newWorld(t, bus.Options{Around: a.around})
	handle := func(c *bus.Context, m hop) error {
		if want := "around " + m.Key; m.Key != "leased" && c.Value(traceKey{}) != want {
			t.Errorf("the handler has the context of %v, want %s", c.Value(traceKey{}), want)
		}
		switch {
		case c.Info().Header("fate") == "again" && c.Info().Attempt == 1:
			return errors.New("not yet")
		case c.Info().Header("fate") == "dead":
			return saga.Permanent(errors.New("never"))
		case c.Info().Header("fate") == "discarded":
			return saga.Discard("not wanted")
		}
		return nil
	}
	policy := func(f recoverability.Failure) recoverability.Decision {
		var permanent *saga.PermanentError
		if errors.As(f.Err, &permanent) {
			return recoverability.DeadLetter()
		}
		return recoverability.RetryNow()
	}
	parts := map[string]bus.Part{
		"tx":     bus.HandleTx(func(c *bus.Context, _ pgx.Tx, m hop) error { return handle(c, m) }),
		"leased": bus.Handle(handle),
	}
	want := map[string]string{
		"tx":     "batch: 1-retried 1-handled 2-handled 1-dead 1-discarded; ",
		"leased": "finish: 1-handled; finish: 1-retried; finish: 2-handled; finish: 1-dead; finish: 1-discarded; ",
	}
	for name, part := range parts {
		w.queueOf(name)
		o := bus.EndpointOptions{Concurrency: 1, Policy: policy, BatchTime: 5 * time.Second}
		if name == "leased" {
			o.BatchMax = 1
		}
		for _, fate := range []string{"fine", "again", "dead", "discarded"} {
			w.send(hop{Key: name}, saga.To(name), saga.WithHeader("fate", fate))
		}
		stop := w.start(name, o, part)
		w.untilEmpty(name)
		stop()
		if got := a.story(name); name == "tx" && got != want[name] || len(got) != len(want[name]) {
			t.Errorf("%s: %s, want %s", name, got, want[name])
		}
	}
}

// After a rollback there are no fates, and the hook gets the error.
func TestAroundOfARollback(t *testing.T) {
	a := &transactions{}
	w := newWorld(t, bus.Options{Around: a.around})
	w.queueOf("tx")
	w.exec(`CREATE FUNCTION edda.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$`)
	w.send(hop{Key: "tx"}, saga.To("tx"))
	w.exec(`CREATE TRIGGER refuse BEFORE DELETE ON ` + w.queue("tx") + ` FOR EACH ROW EXECUTE FUNCTION edda.refuse()`)
	w.start("tx", bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(*bus.Context, pgx.Tx, hop) error { return nil }))
	w.until("a batch was rolled back", func() bool {
		return strings.HasPrefix(a.story("tx"), "batch: 1- rolled back; ")
	})
	w.exec(`DROP TRIGGER refuse ON ` + w.queue("tx"))
	w.untilEmpty("tx")
}

// A relay's pass has a fate for each message, and forward has the hook's context.
func TestAroundOfARelay(t *testing.T) {
	a := &transactions{}
	w := newWorld(t, bus.Options{Around: a.around})
	w.installRelay()
	w.sendCrossed(3)
	w.runRelay(w.relay(w.bus, soonRelayed(), func(ctx context.Context, messages []*saga.Delivery) []error {
		if got := ctx.Value(traceKey{}); got != "around border" {
			t.Errorf("forward has the context of %v", got)
		}
		return []error{nil, saga.Discard("no"), saga.Permanent(errors.New("never"))}[:len(messages)]
	}))
	w.untilEmpty("border")
	w.until("the pass is told", func() bool { return a.story("border") != "" })
	if got, want := a.story("border"), "relay: 1-relayed 1-discarded 1-dead; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Even if a hook misbehaves, messages are handled, once, and relayed.
func TestAroundThatMisbehaves(t *testing.T) {
	type run = func(context.Context)
	for name, around := range map[string]func(context.Context, *event.Transaction, run){
		"panics before": func(context.Context, *event.Transaction, run) { panic("no tracer") },
		"panics after":  func(ctx context.Context, _ *event.Transaction, run run) { run(ctx); panic("no tracer") },
		"exits before":  func(context.Context, *event.Transaction, run) { runtime.Goexit() },
		"does not run":  func(context.Context, *event.Transaction, run) {},
		"runs twice":    func(ctx context.Context, _ *event.Transaction, run run) { run(ctx); run(ctx) },
		"exits after":   func(ctx context.Context, _ *event.Transaction, run run) { run(ctx); runtime.Goexit() },
		"changes it": func(ctx context.Context, t *event.Transaction, run run) {
			run(ctx)
			*t = event.Transaction{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &kept{}
			w := newWorld(t, bus.Options{Around: around, Logger: log.logger()})
			w.installRelay()
			handled := make(chan saga.ID, 100)
			note := func(c *bus.Context) error { handled <- c.Info().ID; return nil }
			w.start("tx", bus.EndpointOptions{}, bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ hop) error {
				return note(c)
			}))
			w.start("leased", bus.EndpointOptions{}, bus.Handle(func(c *bus.Context, _ hop) error { return note(c) }))
			a := &abroad{}
			w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
			for range 10 {
				w.send(hop{}, saga.To("tx"))
				w.send(hop{}, saga.To("leased"))
				w.sendCrossed(1)
			}
			w.untilEmpty("tx")
			w.untilEmpty("leased")
			w.untilEmpty("border")
			if len(handled) != 20 || len(a.got) != 10 {
				t.Errorf("%d were handled and %d relayed, want 20 and 10", len(handled), len(a.got))
			}
			failures := strings.Count(log.String(), "Options.Around failed")
			want := strings.HasPrefix(name, "panics") || strings.HasPrefix(name, "exits")
			if failures > 1 || (failures == 1) != want {
				t.Errorf("the log has %d lines about it, want one: %t\n%.2000s", failures, want, log)
			}
		})
	}
}

// A handler that ends its goroutine, or panics, has the same effect on a batch with a hook around it.
func TestHandlerThatExitsUnderAround(t *testing.T) {
	a := &transactions{}
	w := newWorld(t, bus.Options{Around: a.around, Logger: slog.New(slog.DiscardHandler)})
	w.start("tx", bus.EndpointOptions{Policy: once}, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m hop) error {
		if m.Key == "exits" {
			runtime.Goexit()
		}
		panic("no")
	}))
	w.send(hop{Key: "exits"}, saga.To("tx"))
	w.send(hop{Key: "panics"}, saga.To("tx"))
	w.untilEmpty("tx")
	w.wantText("2", `SELECT count(*)::text FROM edda.dead_letter`)
}

// The middleware of the bus is outside of the endpoint's own, and gets the endpoint's name.
func TestMiddlewareOfTheBus(t *testing.T) {
	named := func(name string) bus.Middleware {
		return func(next bus.Handler) bus.Handler {
			return func(ctx context.Context, d *saga.Delivery) error {
				return next(traced(ctx, fmt.Sprint(ctx.Value(traceKey{}), " ", name)), d)
			}
		}
	}
	w := newWorld(t, bus.Options{Middleware: func(endpoint string) bus.Middleware {
		if endpoint == "plain" {
			return nil
		}
		return named("bus of " + endpoint)
	}})
	seen := make(chan any, 2)
	handler := bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ hop) error { seen <- c.Value(traceKey{}); return nil })
	for _, name := range []string{"hops", "plain"} {
		w.start(name, bus.EndpointOptions{}, bus.Use(named("endpoint")), handler)
	}
	for name, want := range map[string]string{"hops": "<nil> bus of hops endpoint", "plain": "<nil> endpoint"} {
		w.send(hop{}, saga.To(name))
		if got := await(w, "a call", seen); got != want {
			t.Errorf("%s: the handler is inside of %v, want %s", name, got, want)
		}
	}
}
