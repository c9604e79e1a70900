package jetstream_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus/watermill/jetstream"
)

func numbers(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

// A nack takes back all messages in hand behind it: they come again, from the nacked message on, and in order.
func TestNackedMessagesComeAgainInOrder(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	w.publish("orders", "a", "b", "c", "d", "e")
	messages, _ := w.subscribe("orders", jetstream.SubscriberOptions{})
	a, b, c, d := w.receive(messages), w.receive(messages), w.receive(messages), w.receive(messages)
	d.Ack()
	c.Ack()
	b.Nack()
	a.Ack()
	<-b.Context().Done()
	story := ""
	for range 4 {
		m := w.receive(messages)
		if m.Context().Err() != nil {
			t.Errorf("%s came under an ended context", m.Payload)
		}
		m.Ack()
		story += string(m.Payload)
	}
	if story != "bcde" {
		t.Errorf("after the nack of b came %s, want bcde", story)
	}
}

func TestInHandIsBounded(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	w.publish("orders", numbers(10)...)
	messages, _ := w.subscribe("orders", jetstream.SubscriberOptions{InHand: 3})
	first := w.receive(messages)
	w.receive(messages)
	w.receive(messages)
	select {
	case m := <-messages:
		t.Fatalf("%s was given out with three in hand", m.Payload)
	case <-time.After(300 * time.Millisecond):
	}
	first.Ack()
	if m := w.receive(messages); string(m.Payload) != "3" {
		t.Errorf("%s came, want 3", m.Payload)
	}
}

// The messages in hand of a reader that left come first for the next reader, and no acked message comes again.
func TestTheNextReaderGoesOnWhereTheLastOneAcked(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	w.publish("orders", numbers(20)...)
	first, leave := w.subscribe("orders", jetstream.SubscriberOptions{Drain: time.Millisecond})
	w.receive(first).Ack() // so this reader is the first
	second, _ := w.subscribe("orders", jetstream.SubscriberOptions{})
	for n := range 10 {
		select {
		case m := <-first:
			if n < 4 {
				m.Ack()
			}
		case m := <-second:
			t.Fatalf("%s came to the second reader while there was a first", m.Payload)
		case <-time.After(soon):
			t.Fatal("no message")
		}
	}
	leave()
	var story []string
	for range 15 {
		m := w.receive(second)
		m.Ack()
		story = append(story, string(m.Payload))
	}
	if want := numbers(20)[5:]; !slices.Equal(story, want) {
		t.Errorf("the second reader got %s, want %s", strings.Join(story, " "), strings.Join(want, " "))
	}
}

func TestReadingGoesOnAfterTheServerWasAway(t *testing.T) {
	w := newWorld(t)
	w.stream("orders")
	w.publish("orders", numbers(5)...)
	messages, _ := w.subscribe("orders", jetstream.SubscriberOptions{})
	var story []string
	take := func(n int) {
		for range n {
			m := w.receive(messages)
			m.Ack()
			story = append(story, string(m.Payload))
		}
	}
	take(5)
	w.restart(func() {})
	// until it is back
	for p := w.publisher(jetstream.PublisherOptions{}); p.Publish("orders", named(numbers(10)[5:]...)...) != nil; {
		runtime.Gosched()
	}
	for len(story) == 0 || story[len(story)-1] != "9" {
		take(1)
	}
	seen := slices.Compact(slices.Sorted(slices.Values(story)))
	if !slices.Equal(seen, numbers(10)) {
		t.Errorf("came %v", story)
	}
}
