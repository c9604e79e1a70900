package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/examples/two-databases/orders"
	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/saga"
)

// narrator prints the way of some orders, the first ones and the first that is declined, from the events of both
// services. It finds an order by the id of its conversation, which every message that follows from PlaceOrder carries,
// also over the border. Safe for concurrent use.
type narrator struct {
	out  io.Writer
	most int

	mu      sync.Mutex // guards the fields below
	begun   time.Time  // when the first order was placed
	known   map[saga.ID]string
	refused bool                 // a declined order is among them
	waiting map[saga.ID][]string // lines of a conversation before its order was known
}

func newNarrator(out io.Writer, most int) *narrator {
	return &narrator{out: out, most: most, known: map[saga.ID]string{}, waiting: map[saga.ID][]string{}}
}

// placed is called for each order when it is committed.
func (n *narrator) placed(o orders.PlaceOrder, sent saga.Sent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) == n.most {
		n.waiting = nil
		return
	}
	refused := payments.Refuses(o.Card)
	if len(n.known) == n.most-1 && !n.refused && !refused {
		return // the last narrated order has to be a declined one
	}
	n.refused = n.refused || refused
	if len(n.known) == 0 {
		n.begun = time.Now()
	}
	n.known[sent.ID] = o.OrderID
	n.say(sent.ID, fmt.Sprintf("orders    placed, %d.%02d with card …%s", o.Cents/100, o.Cents%100,
		o.Card[len(o.Card)-4:]))
	for _, line := range n.waiting[sent.ID] {
		n.say(sent.ID, line)
	}
}

// Listen is the bus.Options.Events of a service.
func (n *narrator) Listen(service string) func(event.Event) {
	return func(e event.Event) {
		if h, ok := e.(event.Handled); ok {
			n.hear(h.Info.ConversationID, fmt.Sprintf("%-8s  %s is handled by endpoint %s", service, h.Info.Kind,
				h.Endpoint))
		}
	}
}

// Follow looks on while a service publishes.
func (n *narrator) Follow(service string, p message.Publisher) message.Publisher {
	return followed{p, n, service}
}

type followed struct {
	message.Publisher
	narrator *narrator
	service  string
}

// Publish is Watermill's.
func (f followed) Publish(topic string, messages ...*message.Message) error {
	if err := f.Publisher.Publish(topic, messages...); err != nil {
		return err
	}
	for _, m := range messages {
		if conversation, err := saga.ParseID(m.Metadata.Get("edda-conversation")); err == nil {
			f.narrator.hear(conversation, fmt.Sprintf("%-8s  %s is given to the broker, topic %s", f.service,
				m.Metadata.Get(watermill.KindKey), topic))
		}
	}
	return nil
}

func (n *narrator) hear(conversation saga.ID, line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.known[conversation]; ok {
		n.say(conversation, line)
	} else if n.waiting != nil {
		n.waiting[conversation] = append(n.waiting[conversation], line)
	}
}

// say prints a line. The caller holds mu.
func (n *narrator) say(conversation saga.ID, line string) {
	_, _ = fmt.Fprintf(n.out, "%6.2f s  %s  %s\n", time.Since(n.begun).Seconds(), n.known[conversation], line)
}
