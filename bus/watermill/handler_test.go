package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// collected has the messages that a receiver got, in order.
type collected struct {
	mu  sync.Mutex
	all []string
}

func (c *collected) add(m *message.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, string(m.Payload))
	return nil
}

func (c *collected) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.all, " ")
}

// collect runs an endpoint that handles a topic.
func (w *world) collect(topic string) *collected {
	w.Helper()
	c := &collected{}
	w.run("collector-of-"+topic, bus.EndpointOptions{Concurrency: 1}, watermill.ConsumeTx(topic, c.add))
	return c
}

// retryAtOnce is a policy for handlers that fail once or twice.
func retryAtOnce(f recoverability.Failure) recoverability.Decision {
	if f.Info.Attempt > 5 {
		return recoverability.DeadLetter()
	}
	return recoverability.RetryNow()
}

// A plain message, without any metadata of Edda's, starts the saga whose kind is its topic. The saga's events reach a
// stock Router, whose handler's answer starts a handler of an endpoint.
func TestPlainMessageReachesASagaAndASagaARouter(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	w.run("counters", bus.EndpointOptions{Concurrency: 1}, bus.Saga(counters))
	letters := w.collect("letters")
	router, err := message.NewRouter(message.RouterConfig{}, base.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	router.AddMiddleware(middleware.Recoverer, watermill.PublishWithAck)
	router.AddHandler("write", counted{}.Kind(), s, "letters", p, func(m *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage(base.NewUUID(), append([]byte("letter:"), m.Payload...))}, nil
	})
	w.route(router)
	for n := range 3 {
		w.publish(p, "count.up", message.NewMessage(base.NewUUID(), fmt.Appendf(nil, `{"Key":"a","N":%d}`, n+1)))
	}
	want := `letter:{"Sum":1} letter:{"Sum":3} letter:{"Sum":6}`
	w.until("three letters came", func() bool { return len(letters.String()) >= len(want) })
	if got := letters.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// route runs a Router until the test ends.
func (w *world) route(router *message.Router) {
	w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(w.Context())) }()
	w.Cleanup(func() {
		if err := errors.Join(router.Close(), <-ended); err != nil {
			w.Error(err)
		}
	})
	<-router.Running()
}

// Handlers of Watermill in an endpoint, in a transaction and outside: the messages and rows of a failed attempt are
// discarded; those of the successful attempt are written once.
func TestHandlersOfAnEndpoint(t *testing.T) {
	w := newWorld(t)
	table := pgx.Identifier{w.schema, "written"}.Sanitize()
	if _, err := w.pool.Exec(t.Context(), `CREATE TABLE `+table+` (what text)`); err != nil {
		t.Fatal(err)
	}
	p, _ := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	returned, published, apart := w.collect("returned"), w.collect("published"), w.collect("apart")
	handle := func(m *message.Message) ([]*message.Message, error) {
		ctx := m.Context()
		info, _ := watermill.Info(ctx)
		tx, inTx := watermill.TxFromContext(ctx)
		if inTx != (info.Kind == "in") {
			t.Errorf("a handler of %s has a transaction: %v", info.Kind, inTx)
		}
		if inTx {
			if _, err := tx.Exec(ctx, `INSERT INTO `+table+` VALUES ($1)`, m.Payload); err != nil {
				return nil, err
			}
		}
		text := fmt.Appendf(nil, "%s-%s-%d", info.Kind, m.Payload, info.Attempt)
		for _, one := range []struct {
			topic string
			ctx   context.Context
			tx    pgx.Tx
		}{{"published", ctx, nil}, {"published", ctx, tx}, {"apart", watermill.PublishSeparately(ctx), nil}} {
			out := message.NewMessageWithContext(one.ctx, base.NewUUID(), text)
			err := error(nil)
			if one.tx != nil {
				err = p.PublishTx(one.tx, one.topic, out)
			} else {
				err = p.Publish(one.topic, out)
			}
			if err != nil {
				return nil, err
			}
		}
		out := []*message.Message{message.NewMessage(base.NewUUID(), text)}
		if info.Attempt == 1 {
			return out, errors.New("not yet")
		}
		return out, nil
	}
	w.run("inside", bus.EndpointOptions{Concurrency: 1, Policy: retryAtOnce},
		watermill.HandleTx("in", "returned", p, handle))
	w.run("outside", bus.EndpointOptions{Concurrency: 1, Policy: retryAtOnce},
		watermill.Handle("out", "returned", p, handle, middleware.Recoverer))
	w.publish(p, "in", numbered(1)...)
	w.until("the handler inside has ended", func() bool { return returned.String() != "" })
	w.publish(p, "out", numbered(1)...)
	w.until("all came", func() bool {
		return len(strings.Fields(returned.String())) == 2 && len(strings.Fields(published.String())) == 4 &&
			len(strings.Fields(apart.String())) == 4
	})
	for got, want := range map[string]string{
		returned.String():  "in-0-2 out-0-2",
		published.String(): "in-0-2 in-0-2 out-0-2 out-0-2",
		apart.String():     "in-0-1 in-0-2 out-0-1 out-0-2",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	var written int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&written); err != nil || written != 1 {
		t.Errorf("%d rows were written, want 1 (%v)", written, err)
	}
}

// Messages that a receiver publishes with the message's context are sent when the ack commits, and not if it nacks or
// answers too late.
func TestPublishJoinsTheMessageInHand(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	joined := w.collect("joined")
	messages := w.subscribe(s, "in-hand")
	w.publish(p, "in-hand", numbered(2)...)
	out := func(m *message.Message, text string) error {
		return p.Publish("joined", message.NewMessageWithContext(m.Context(), base.NewUUID(), []byte(text)))
	}
	for _, text := range []string{"nacked", "acked"} {
		m := receive(w, messages)
		if err := out(m, text); err != nil {
			t.Error(err)
		}
		if left := w.left("collector-of-joined"); left != 0 || joined.String() != "" {
			t.Errorf("%d are queued and %q came before the ack", left, joined)
		}
		if text == "nacked" {
			m.Nack()
		} else {
			m.Ack()
		}
		<-m.Context().Done() // its step is over
		if err := out(m, "late"); !errors.Is(err, watermill.ErrAnswered) {
			t.Errorf("published after the answer: %v", err)
		}
	}
	last := receive(w, messages)
	large := message.NewMessageWithContext(last.Context(), base.NewUUID(), make([]byte, 2<<20))
	if err := p.Publish("joined", large); !errors.Is(err, saga.ErrTooLarge) {
		t.Errorf("a large message joins: %v", err)
	}
	full := message.NewMessageWithContext(last.Context(), base.NewUUID(), nil)
	for n := range 64 {
		full.Metadata.Set(fmt.Sprint("name-", n), "")
	}
	if err := p.Publish("joined", full); err == nil || !strings.Contains(err.Error(), "message 1 of 1") {
		t.Errorf("with its UUID it has a header too many: %v", err)
	}
	if err := out(last, "last"); err != nil {
		t.Error(err)
	}
	last.Ack()
	w.until("both came", func() bool { return strings.Contains(joined.String(), "last") })
	if got := joined.String(); got != "acked last" {
		t.Errorf("sent %s, want acked last", got)
	}
	w.publish(p, "in-hand", numbered(1)...)
	lost := receive(w, messages)
	for _, topic := range []string{"joined", "unheard"} {
		if err := p.Publish(topic, message.NewMessageWithContext(lost.Context(), base.NewUUID(), nil)); err != nil {
			t.Error(err)
		}
	}
	lost.Ack()
	w.until("it is a dead letter", func() bool { return w.lettersAbout("publish unheard: no endpoint") == 1 })
	if got := joined.String(); got != "acked last" {
		t.Errorf("sent %s, want nothing of the dead letter", got)
	}
}

// A Router on queues of Edda, with PublishWithAck: each message has one answer, however its connections break.
func TestTogetherIsExactlyOnce(t *testing.T) {
	w := newWorld(t)
	broken, proxy := w.breakable()
	safe, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	if err := errors.Join(s.SubscribeInitialize("questions"), s.SubscribeInitialize("answers")); err != nil {
		t.Fatal(err)
	}
	p, s := broken.pubSub(watermill.PublisherOptions{},
		watermill.SubscriberOptions{Concurrency: 3, Poll: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	router, err := message.NewRouter(message.RouterConfig{}, base.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	router.AddMiddleware(watermill.PublishWithAck)
	router.AddHandler("answer", "questions", s, "answers", p, func(m *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage(m.UUID, m.Payload)}, nil
	})
	broken.route(router)
	const all = 120
	for _, how := range []faultproxy.Action{faultproxy.DropReply, faultproxy.Cut} {
		before := w.left("answers")
		proxy.Random(0.05, how)
		for _, m := range numbered(all) {
			w.publish(safe, "questions", m)
		}
		w.until("all questions are answered", func() bool { return w.left("questions") == 0 })
		proxy.Random(0, how)
		if left := w.left("answers") - before; left != all || len(proxy.Fired()) == 0 {
			t.Errorf("%v: %d answers to %d questions, %d connections broken", how, left, all, len(proxy.Fired()))
		}
	}
}

// The stock event processor gets the events that a saga publishes; handlers of the component are parts of an endpoint,
// and publish with their effects.
func TestCQRS(t *testing.T) {
	w := newWorld(t)
	p, _ := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	w.run("counters", bus.EndpointOptions{Concurrency: 1}, bus.Saga(counters))
	marshaler := watermill.NewCQRSMarshaler()
	commands, err := cqrs.NewCommandBusWithConfig(p, cqrs.CommandBusConfig{Marshaler: marshaler,
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) {
			return p.CommandName, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := cqrs.NewEventBusWithConfig(p, cqrs.EventBusConfig{Marshaler: marshaler,
		GeneratePublishTopic: func(p cqrs.GenerateEventPublishTopicParams) (string, error) { return p.EventName, nil }})
	if err != nil {
		t.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, base.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{Marshaler: marshaler,
		GenerateSubscribeTopic: func(p cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
			return p.EventName, nil
		},
		SubscriberConstructor: func(p cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return watermill.NewSubscriber(w.bus, watermill.SubscriberOptions{ConsumerGroup: p.HandlerName})
		}})
	if err != nil {
		t.Fatal(err)
	}
	report := w.collect("report")
	if err := processor.AddHandlers(cqrs.NewEventHandler("note", func(ctx context.Context, e *counted) error {
		return events.Publish(ctx, &reported{What: fmt.Sprint("sum ", e.Sum)})
	})); err != nil {
		t.Fatal(err)
	}
	w.route(router)
	attempts := 0
	askOnce := func(ctx context.Context, c *ask) error {
		attempts++
		return errors.Join(commands.Send(ctx, &countUp{Key: "a", N: c.N}),
			map[int]error{1: errors.New("not yet")}[attempts])
	}
	parts := watermill.CQRSHandlers{Tx: true}.Commands(cqrs.NewCommandHandler("ask", askOnce))
	parts = append(parts, watermill.CQRSHandlers{Topic: func(string) string { return "report.again" }}.Events(
		cqrs.NewEventHandler("twice", func(context.Context, *reported) error { return nil }))...)
	w.run("cqrs", bus.EndpointOptions{Concurrency: 1, Policy: retryAtOnce}, parts[0])
	w.run("cqrs-outside", bus.EndpointOptions{Policy: retryAtOnce}, parts[1])
	if err := commands.Send(t.Context(), &ask{N: 5}); err != nil {
		t.Fatal(err)
	}
	w.until("it was reported", func() bool { return report.String() != "" })
	if got := report.String(); got != `{"What":"sum 5"}` || attempts != 2 {
		t.Errorf("reported %s after %d attempts, want the sum 5 after 2", got, attempts)
	}
	wrong := message.NewMessage(base.NewUUID(), []byte("{}"))
	w.publish(p, "report.again", wrong) // its name is not the handler's
	w.until("the wrong name is a dead letter", func() bool { return w.lettersAbout("handler twice of report") == 1 })
}

type (
	ask      struct{ N int }
	reported struct{ What string }
)

func (ask) Kind() string      { return "ask" }
func (reported) Kind() string { return "report" }

// lettersAbout counts the dead letters whose error has these words.
func (w *world) lettersAbout(words string) (n int) {
	w.Helper()
	err := w.pool.QueryRow(w.Context(), `SELECT count(*) FROM `+pgx.Identifier{w.schema, "dead_letter"}.Sanitize()+
		` WHERE position($1 IN error) > 0`, words).Scan(&n)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// Every invalid handler is a fault of the endpoint, and the error names all of them.
func TestHandlersAreChecked(t *testing.T) {
	w := newWorld(t)
	f := func(*message.Message) ([]*message.Message, error) { return nil, nil }
	_, err := bus.NewEndpoint(w.bus, "wrong", bus.EndpointOptions{},
		watermill.HandleTx("Bad Topic", "", nil, f), watermill.Handle("nil.handler", "", nil, nil),
		watermill.Consume("nil.consumer", nil), watermill.HandleTx("no.publisher", "out", nil, f),
		watermill.HandleTx("nil.middleware", "", nil, f, nil))
	for _, want := range []string{`topic "Bad Topic"`, `"nil.handler" is nil`, `"nil.consumer" is nil`,
		`publishes to "out", and its publisher is nil`, `middleware of topic "nil.middleware" is nil`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not said: %v", want, err)
		}
	}
	returns := func(*message.Message) ([]*message.Message, error) { return numbered(1), nil }
	w.run("nowhere", bus.EndpointOptions{Policy: retryAtOnce}, watermill.HandleTx("nowhere", "", nil, returns))
	p, _ := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	w.publish(p, "nowhere", numbered(1)...)
	w.until("it is a dead letter", func() bool { return w.lettersAbout("has no publisher") == 1 })
}
