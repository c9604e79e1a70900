package brokers

import (
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// soon is far longer than any of these waits takes.
const soon = 30 * time.Second

// opened is what was opened. It is closed when the test ends.
func opened[C io.Closer](t *testing.T) func(c C, err error) C {
	return func(c C, err error) C {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func subscribe(t *testing.T, s message.Subscriber, topic string) <-chan *message.Message {
	t.Helper()
	messages, err := s.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatalf("subscribe to %s: %v", topic, err)
	}
	return messages
}

func receive(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	select {
	case m, open := <-messages:
		if !open {
			t.Fatal("the channel is closed, want a message")
		}
		return m
	case <-time.After(soon):
		t.Fatalf("no message in %v", soon)
	}
	return nil
}

// pipe is a publisher to a topic of its own, and what the topic gives.
type pipe struct {
	*testing.T
	name string
	out  message.Publisher
	in   <-chan *message.Message
}

func (p *pipe) publish(text string) error {
	return p.out.Publish(p.name, message.NewMessage(watermill.NewUUID(), []byte(text)))
}

func (p *pipe) mustPublish(texts ...string) {
	p.Helper()
	for _, text := range texts {
		if err := p.publish(text); err != nil {
			p.Fatal(err)
		}
	}
}

// next takes a message and acks it.
func (p *pipe) next() *message.Message {
	p.Helper()
	m := receive(p.T, p.in)
	m.Ack()
	return m
}

// carries fails unless a message arrives unchanged, with the metadata and more.
func (p *pipe) carries(more message.Metadata) (sent *message.Message) {
	p.Helper()
	sent = message.NewMessage(watermill.NewUUID(), []byte("{\"é\": \"\x00\xff\"}"))
	sent.Metadata = message.Metadata{"edda_kind": "order.paid", ConversationKey: "c1", "empty": ""}
	maps.Copy(sent.Metadata, more)
	if err := p.out.Publish(p.name, sent); err != nil {
		p.Fatal(err)
	}
	got := p.next()
	if got.UUID != sent.UUID || string(got.Payload) != string(sent.Payload) ||
		!maps.Equal(got.Metadata, sent.Metadata) {
		p.Errorf("sent %s %v %q\ngot  %s %v %q", sent.UUID, sent.Metadata, sent.Payload, got.UUID, got.Metadata,
			got.Payload)
	}
	return sent
}

// keepsOrder nacks every message once. With one message in hand, those behind a nacked one wait for it.
func (p *pipe) keepsOrder() {
	p.Helper()
	p.mustPublish("a", "b", "c")
	var story strings.Builder
	for i := range 6 {
		m := receive(p.T, p.in)
		story.Write(m.Payload)
		if i%2 == 0 {
			m.Nack()
		} else {
			m.Ack()
		}
	}
	if story.String() != "aabbcc" {
		p.Errorf("every message nacked once: %s, want aabbcc", story.String())
	}
}

// works waits until a broker that was away takes messages again.
func (p *pipe) works() {
	p.Helper()
	for begin := time.Now(); ; {
		err := p.publish("c")
		if err == nil {
			return
		}
		if time.Since(begin) > soon {
			p.Fatalf("the broker is back and publishing still fails: %v", err)
		}
	}
}

// passes fails unless the error will pass, so that a relay waits.
func passes(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || Unfit(err) {
		t.Errorf("%s: %v, want an error that passes", what, err)
	}
}

// unfit fails unless the error is permanent, so that a relay gives the message up.
func unfit(t *testing.T, what string, err error) {
	t.Helper()
	if !Unfit(err) {
		t.Errorf("%s: %v, want an error that no waiting helps", what, err)
	}
}
