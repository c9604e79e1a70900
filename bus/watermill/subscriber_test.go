package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

func (w *world) pubSub(p watermill.PublisherOptions, o watermill.SubscriberOptions) (*watermill.Publisher,
	*watermill.Subscriber) {
	w.Helper()
	publisher, err := watermill.NewPublisher(w.bus, p)
	if err != nil {
		w.Fatal(err)
	}
	subscriber, err := watermill.NewSubscriber(w.bus, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := errors.Join(publisher.Close(), subscriber.Close()); err != nil {
			w.Error(err)
		}
	})
	return publisher, subscriber
}

func (w *world) subscribe(s *watermill.Subscriber, topic string) <-chan *message.Message {
	w.Helper()
	messages, err := s.Subscribe(context.WithoutCancel(w.Context()), topic)
	if err != nil {
		w.Fatal(err)
	}
	return messages
}

func (w *world) publish(p message.Publisher, topic string, messages ...*message.Message) {
	w.Helper()
	if err := p.Publish(topic, messages...); err != nil {
		w.Fatal(err)
	}
}

func numbered(n int) []*message.Message {
	messages := make([]*message.Message, n)
	for i := range messages {
		messages[i] = message.NewMessage(base.NewUUID(), fmt.Append(nil, i))
	}
	return messages
}

// Every message comes back as it was published, and its id in Edda is its UUID.
func TestMessagesKeepTheirForm(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	messages := w.subscribe(s, "forms")
	sent := []*message.Message{
		message.NewMessage(base.NewUUID(), []byte(`{}`)),
		message.NewMessage(strings.ToUpper(base.NewUUID()), []byte{0, 255}),
		message.NewMessage(base.NewULID(), nil),
		message.NewMessage("", nil),
	}
	sent[0].Metadata = message.Metadata{"a": "b", "c": "", watermill.KindKey: "order.place"}
	w.publish(p, "forms", sent...)
	for n, want := range sent {
		got := receive(w, messages)
		want.Metadata.Set(watermill.KindKey, "forms") // the topic is the kind, whatever came with the message
		info, ok := watermill.Info(got.Context())
		if !got.Equals(want) || !ok || n == 0 && info.ID.String() != want.UUID {
			t.Errorf("got %q %v %q as %v, want %q %v %q", got.UUID, got.Metadata, got.Payload, info.ID, want.UUID,
				want.Metadata, want.Payload)
		}
		got.Ack()
	}
}

// A nacked message stays the first: Watermill's rule, and the order is kept.
func TestNackKeepsTheOrder(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	messages := w.subscribe(s, "ordered")
	w.publish(p, "ordered", numbered(20)...)
	order := ""
	for n := range 22 {
		m := receive(w, messages)
		order += string(m.Payload) + " "
		if n == 5 || n == 6 {
			m.Nack()
		} else {
			m.Ack()
		}
	}
	if want := "0 1 2 3 4 5 5 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "; order != want {
		t.Errorf("received %s\nwant     %s", order, want)
	}
	w.until("the queue is empty", func() bool { return w.left("ordered") == 0 })
}

// With a policy a nack is a failed attempt: it is counted, other messages overtake it, and it becomes a dead letter.
func TestNackUnderAPolicy(t *testing.T) {
	w := newWorld(t)
	policy := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt < 3 {
			return recoverability.RetryNow()
		}
		return recoverability.DeadLetter()
	}
	p, s := w.pubSub(watermill.PublisherOptions{},
		watermill.SubscriberOptions{Policy: policy, AckDeadline: 100 * time.Millisecond})
	messages := w.subscribe(s, "judged")
	w.publish(p, "judged", numbered(4)...)
	seen := map[string]int{}
	for range 8 {
		m := receive(w, messages)
		seen[string(m.Payload)]++
		switch string(m.Payload) {
		case "1":
			m.Nack()
		case "2":
			<-m.Context().Done() // unanswered, which has the same effect
		default:
			m.Ack()
		}
	}
	w.until("the queue is empty", func() bool { return w.left("judged") == 0 })
	if got := fmt.Sprint(seen); got != "map[0:1 1:3 2:3 3:1]" {
		t.Errorf("received %s", got)
	}
	var letters int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+
		pgx.Identifier{w.schema, "dead_letter"}.Sanitize()).Scan(&letters); err != nil || letters != 2 {
		t.Errorf("%d dead letters, want 2 (%v)", letters, err)
	}
}

// Close requeues messages without an ack, commits the acked messages, closes the channel and refuses later calls.
func TestCloseCommitsWhatWasAcked(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	messages := w.subscribe(s, "closing")
	w.publish(p, "closing", numbered(10)...)
	for range 4 {
		receive(w, messages).Ack()
	}
	held := receive(w, messages)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open := <-messages; open || held.Context().Err() == nil {
		t.Errorf("after Close: channel open %v, context of the message in hand: %v", open, held.Context().Err())
	}
	if left := w.left("closing"); left != 6 {
		t.Errorf("published 10, acked 4, left %d", left)
	}
	if _, err := s.Subscribe(t.Context(), "closing"); !errors.Is(err, watermill.ErrClosed) {
		t.Errorf("subscribe after Close: %v", err)
	}
	if err := errors.Join(p.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := p.Publish("closing", numbered(1)...); !errors.Is(err, watermill.ErrClosed) {
		t.Errorf("publish after Close: %v", err)
	}
}

// A slow receiver delays the messages, and loses none: a message that is not answered in time is delivered again.
func TestUnansweredMessageComesAgain(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{AckDeadline: 30 * time.Millisecond})
	messages := w.subscribe(s, "slow")
	w.publish(p, "slow", numbered(2)...)
	first := receive(w, messages)
	<-first.Context().Done()
	again := receive(w, messages)
	first.Ack() // too late
	if string(again.Payload) != "0" {
		t.Errorf("after 0 came %s", again.Payload)
	}
	again.Ack()
	receive(w, messages).Ack()
	w.until("the queue is empty", func() bool { return w.left("slow") == 0 })
}

// Events reach every group once, also events of a saga; a group may have a name that no queue can have.
func TestConsumerGroups(t *testing.T) {
	w := newWorld(t)
	var groups []<-chan *message.Message
	var p *watermill.Publisher
	for _, name := range []string{"mail", "Search Index", strings.Repeat("x", 80)} {
		var s *watermill.Subscriber
		p, s = w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{ConsumerGroup: name})
		groups = append(groups, w.subscribe(s, "counted"))
	}
	w.publish(p, "counted", numbered(2)...)
	if sent, err := w.bus.Publish(t.Context(), counted{Sum: 7}); err != nil || sent.Copies != 3 {
		t.Errorf("%+v %v", sent, err)
	}
	for n, messages := range groups {
		got := ""
		for range 3 {
			m := receive(w, messages)
			got += string(m.Payload) + " "
			m.Ack()
		}
		if want := `0 1 {"Sum":7} `; got != want {
			t.Errorf("group %d got %s, want %s", n, got, want)
		}
	}
}

// Publish in the caller's transaction, and with messages that cannot be published.
func TestPublish(t *testing.T) {
	w := newWorld(t)
	p, s := w.pubSub(watermill.PublisherOptions{}, watermill.SubscriberOptions{})
	queues, _ := w.pubSub(watermill.PublisherOptions{Queue: true}, watermill.SubscriberOptions{})
	if err := s.SubscribeInitialize("orders"); err != nil {
		t.Fatal(err)
	}
	undo := errors.New("undo")
	for _, end := range []error{undo, nil} {
		err := w.bus.InTx(t.Context(), func(tx pgx.Tx) error {
			if err := p.PublishTx(tx, "orders", numbered(2)...); err != nil {
				return err
			}
			if err := queues.InTx(tx).Publish("orders", numbered(1)...); err != nil {
				return err
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	if left := w.left("orders"); left != 3 {
		t.Errorf("%d messages, want the 3 of the transaction that committed", left)
	}
	twice := numbered(1)[0]
	w.publish(p, "orders", twice, twice) // the same UUID may be published again
	w.publish(p, "orders", twice)
	w.publish(p, "orders")
	reserved := numbered(1)[0]
	reserved.Metadata.Set("edda-from", "me")
	large := message.NewMessage("1", make([]byte, 2<<20))
	for what, err := range map[string]error{
		"cannot name an Edda queue": p.Publish("Orders!", numbered(1)...),
		"publish nobody: no end":    p.Publish("nobody", numbered(1)...),
		"run that endpoint once":    queues.Publish("nobody", numbered(1)...),
		"the transaction is nil":    p.PublishTx(nil, "orders", numbered(1)...),
		"reserved":                  p.Publish("orders", reserved),
		"body of 2097152 bytes":     p.Publish("orders", large),
		"message 2 of 2 is nil":     p.Publish("orders", twice, nil),
		"cannot name":               second(s.Subscribe(t.Context(), "Orders!")),
		"AckDeadline is 1h0m0s": second(watermill.NewSubscriber(w.bus,
			watermill.SubscriberOptions{AckDeadline: time.Hour})),
		"BatchMax is -1":            second(watermill.NewSubscriber(w.bus, watermill.SubscriberOptions{BatchMax: -1})),
		"publisher: the bus is nil": second(watermill.NewPublisher(nil, watermill.PublisherOptions{})),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q is not said: %v", what, err)
		}
	}
	if left := w.left("orders"); left != 6 {
		t.Errorf("%d messages, want 6", left)
	}
}

// Postgres crashes twice under a publisher and a subscriber: every message that Publish accepted arrives.
func TestReconnects(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	server := s.server
	p, sub := s.pubSub(t)
	t.Cleanup(func() { _ = errors.Join(p.Close(), sub.Close()) })
	messages := s.subscribe(sub.(*watermill.Subscriber), "crash")
	const all, publishers = 3000, 10
	var (
		publishing sync.WaitGroup
		next       = make(chan int)
	)
	for range publishers {
		publishing.Go(func() {
			for n := range next {
				for p.Publish("crash", message.NewMessage(fmt.Sprint(n), nil)) != nil && t.Context().Err() == nil {
					_ = run.Sleep(t.Context(), 5*time.Millisecond) // and again: it is then in the queue once or twice
				}
			}
		})
	}
	publishing.Go(func() {
		defer close(next)
		for n := range all {
			if n == all/3 || n == all/2 {
				publishing.Go(func() {
					if err := server.Restart(context.Background(), pgdev.Immediate); err != nil {
						t.Error(err)
					}
				})
			}
			next <- n
		}
	})
	seen := map[string]int{}
	for len(seen) < all {
		m := receive(s.world, messages)
		seen[m.UUID]++
		m.Ack()
	}
	publishing.Wait()
}

// Watermill's middleware around handlers of Edda.
func TestMiddleware(t *testing.T) {
	w := newWorld(t)
	p, _ := w.pubSub(watermill.PublisherOptions{Queue: true}, watermill.SubscriberOptions{})
	var mu sync.Mutex
	calls := map[string]int{}
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		calls[what]++
	}
	spy := func(h message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			if info, ok := watermill.Info(m.Context()); !ok || info.Kind != m.Metadata.Get(watermill.KindKey) {
				t.Errorf("the middleware sees %v of kind %s", m.Metadata, info.Kind)
			}
			out, err := h(m)
			note(fmt.Sprintf("%s %v %v", m.Payload, out, errors.As(err, new(middleware.RecoveredPanicError))))
			return out, err
		}
	}
	policy := func(recoverability.Failure) recoverability.Decision { return recoverability.DeadLetter() }
	raw := bus.HandleRaw(func(ctx *bus.Context, d *saga.Delivery) error {
		note("handled " + string(d.Body))
		if _, ok := ctx.Deadline(); !ok || string(d.Body) == "2" {
			panic("no")
		}
		if string(d.Body) == "1" {
			return errors.New("no")
		}
		return nil
	})
	retry := middleware.Retry{MaxRetries: 3}
	w.run("plain", bus.EndpointOptions{Policy: policy}, raw,
		bus.Use(watermill.Middleware(spy), watermill.Middleware(middleware.Recoverer),
			watermill.Middleware(middleware.Timeout(time.Second))))
	w.run("retried", bus.EndpointOptions{Policy: policy}, raw, bus.Use(watermill.Middleware(retry.Middleware)))
	w.publish(p, "plain", numbered(3)...)
	w.until("plain is empty", func() bool { return w.left("plain") == 0 })
	w.publish(p, "retried", numbered(2)[1])
	w.until("retried is empty", func() bool { return w.left("retried") == 0 })
	want := "map[0 [] false:1 1 [] false:1 2 [] true:1 handled 0:1 handled 1:2 handled 2:1]"
	if got := fmt.Sprint(calls); got != want {
		t.Errorf("calls %s\nwant  %s", got, want)
	}
	var reason string
	query := `SELECT error FROM ` + pgx.Identifier{w.schema, "dead_letter"}.Sanitize() + ` WHERE endpoint = 'retried'`
	if err := w.pool.QueryRow(t.Context(), query).Scan(&reason); err != nil ||
		!strings.Contains(reason, "called next twice") {
		t.Errorf("Retry around an endpoint: %q %v", reason, err)
	}
}
