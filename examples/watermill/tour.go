package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
)

// BookRoom is a command of the CQRS component.
type BookRoom struct{ Room int }

// RoomBooked is the event that follows it.
type RoomBooked struct{ Room int }

// tour is Watermill's Router and CQRS component, with Edda under them.
type tour struct {
	bus   *bus.Bus
	rooms int
	out   io.Writer

	mu   sync.Mutex
	seen map[string]int
	done chan struct{} // closed when everything was seen
}

func (t *tour) run(ctx context.Context) error {
	router, err := message.NewRouter(message.RouterConfig{}, base.NopLogger{})
	if err != nil {
		return err
	}
	router.AddMiddleware(middleware.Recoverer, middleware.CorrelationID)
	commands, err := t.route(router)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	<-router.Running()
	for room := range t.rooms {
		if err := commands.Send(ctx, &BookRoom{Room: room}); err != nil {
			return errors.Join(err, router.Close())
		}
	}
	select {
	case <-t.done:
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	if err := errors.Join(router.Close(), <-ended); err != nil {
		return err
	}
	return t.check()
}

// topic makes a queue's name of a Go type's.
func topic(name string) string { return strings.ToLower(name) }

// route wires the tour: command → its handler → event → two groups, and one group feeds a plain handler of the
// Router, which publishes to a last queue.
func (t *tour) route(router *message.Router) (*cqrs.CommandBus, error) {
	marshaler := cqrs.JSONMarshaler{GenerateName: cqrs.StructName}
	publisher, err := watermill.NewPublisher(t.bus, watermill.PublisherOptions{})
	if err != nil {
		return nil, err
	}
	commands, err := cqrs.NewCommandBusWithConfig(publisher, cqrs.CommandBusConfig{
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) {
			return topic(p.CommandName), nil
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return nil, err
	}
	events, err := cqrs.NewEventBusWithConfig(publisher, cqrs.EventBusConfig{
		GeneratePublishTopic: func(p cqrs.GenerateEventPublishTopicParams) (string, error) {
			return topic(p.EventName), nil
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return nil, err
	}
	return commands, errors.Join(t.handleCommands(router, marshaler, events),
		t.handleEvents(router, marshaler, publisher))
}

func (t *tour) handleCommands(router *message.Router, marshaler cqrs.CommandEventMarshaler,
	events *cqrs.EventBus) error {
	processor, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		GenerateSubscribeTopic: func(p cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) {
			return topic(p.CommandName), nil
		},
		SubscriberConstructor: func(cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return watermill.NewSubscriber(t.bus, watermill.SubscriberOptions{})
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return err
	}
	return processor.AddHandlers(cqrs.NewCommandHandler("book", func(ctx context.Context, c *BookRoom) error {
		t.note("booked")
		return events.Publish(ctx, &RoomBooked{Room: c.Room})
	}))
}

// handleEvents gives each event handler a consumer group, hence its own copy of each event.
func (t *tour) handleEvents(router *message.Router, marshaler cqrs.CommandEventMarshaler,
	publisher message.Publisher) error {
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(p cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
			return topic(p.EventName), nil
		},
		SubscriberConstructor: func(p cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return watermill.NewSubscriber(t.bus, watermill.SubscriberOptions{ConsumerGroup: p.HandlerName})
		},
		Marshaler: marshaler,
	})
	if err != nil {
		return err
	}
	letters, err := watermill.NewSubscriber(t.bus, watermill.SubscriberOptions{})
	if err != nil {
		return err
	}
	router.AddHandler("print", "letters", letters, "printed", publisher,
		func(m *message.Message) ([]*message.Message, error) {
			t.note("printed")
			return []*message.Message{message.NewMessage(base.NewUUID(), m.Payload)}, nil
		})
	router.AddConsumerHandler("post", "printed", letters, func(*message.Message) error { t.note("posted"); return nil })
	return processor.AddHandlers(
		cqrs.NewEventHandler("statistics", func(context.Context, *RoomBooked) error {
			t.note("in the statistics")
			return nil
		}),
		cqrs.NewEventHandler("mail", func(_ context.Context, e *RoomBooked) error {
			t.note("mailed")
			return publisher.Publish("letters", message.NewMessage(base.NewUUID(), fmt.Append(nil, "room ", e.Room)))
		}),
	)
}

var stations = []string{"booked", "in the statistics", "mailed", "printed", "posted"}

func (t *tour) note(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[what]++
	if all := t.seen["posted"] + t.seen["in the statistics"]; all == 2*t.rooms {
		close(t.done)
	}
}

// check: between two handlers of a Router a message is delivered at least once; without a crash that is once.
func (t *tour) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text []string
	var err error
	for _, what := range stations {
		text = append(text, fmt.Sprintf("%d %s", t.seen[what], what))
		if t.seen[what] != t.rooms {
			err = fmt.Errorf("the tour's counts are wrong: want %d everywhere", t.rooms)
		}
	}
	_, _ = fmt.Fprintln(t.out, "tour: Router and CQRS on Edda:", strings.Join(text, ", "))
	return err
}
