package brokers

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/base/run"
)

// AllOf makes one subscription of several topics, which are the parts of one: what an intake gathers from all of them
// goes into one transaction, and each keeps its order. Whatever topic Subscribe is asked for, it means these.
//
// When one of the subscriptions ends, all do, so that whoever subscribed subscribes anew.
func AllOf(s message.Subscriber, topics ...string) message.Subscriber {
	return allOf{Subscriber: s, topics: topics}
}

type allOf struct {
	message.Subscriber
	topics []string
}

func (a allOf) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	channels := make([]<-chan *message.Message, len(a.topics))
	for i, topic := range a.topics {
		channel, err := a.Subscriber.Subscribe(ctx, topic)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
		}
		channels[i] = channel
	}
	all := make(chan *message.Message)
	run.Detached(ctx, func(context.Context) { // it ends with the subscriptions, and they with ctx
		defer close(all)
		defer cancel()
		merge(ctx, cancel, channels, all)
	})
	return all, nil
}

// merge returns when every channel is closed. What nobody takes any more is refused.
func merge(ctx context.Context, cancel context.CancelFunc, channels []<-chan *message.Message,
	all chan<- *message.Message) {
	group := run.NewGroup(context.WithoutCancel(ctx))
	for _, channel := range channels {
		group.Go(func(context.Context) error {
			defer cancel()
			for m := range channel {
				select {
				case all <- m:
				case <-ctx.Done():
					m.Nack()
				}
			}
			return nil
		})
	}
	_ = group.Wait() // its members have no errors to tell
}
